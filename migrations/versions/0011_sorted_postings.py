"""Posting lists sorted by document, so that one document can be looked up in a long list.

Skipping common terms pays from 50,000 postings on since then. An operator's own value stays.
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("""
        update contextforge.postings set packed = array(select unnest(packed) order by 1)
        where cardinality(packed) > 1;
        alter table contextforge.installation alter prune_from set default 50000;
        update contextforge.installation set prune_from = 50000 where prune_from = 200000;
    """)


def downgrade() -> None:
    op.execute("""
        alter table contextforge.installation alter prune_from set default 200000;
        update contextforge.installation set prune_from = 200000 where prune_from = 50000;
    """)
