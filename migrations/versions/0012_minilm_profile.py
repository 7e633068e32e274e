"""The profile of the shipped embedder, as benchmarks/fit_profile.py fits it.

One that an operator has set already stays. Points fitted anew are a new revision, which replaces
these points and no others.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

EMBEDDER = "all-MiniLM-L6-v2@53aa51172d14/384"
RAW_COSINES = "{0, 0.279, 0.42, 0.521, 0.755, 1}"
CALIBRATED_COSINES = "{0, 0.3, 0.5, 0.7, 0.95, 1}"


def upgrade() -> None:
    op.execute(f"""
        insert into contextforge.embedder_profiles (
            embedder_version, dimension, raw_cosines, calibrated_cosines, fitted_at
        )
        values ('{EMBEDDER}', 384, '{RAW_COSINES}', '{CALIBRATED_COSINES}', '2026-11-18T00:00Z')
        on conflict (embedder_version) do nothing
    """)


def downgrade() -> None:
    op.execute(f"""
        delete from contextforge.embedder_profiles
        where embedder_version = '{EMBEDDER}'
            and raw_cosines = '{RAW_COSINES}' and calibrated_cosines = '{CALIBRATED_COSINES}'
    """)
