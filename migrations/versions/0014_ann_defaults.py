"""An ANN index that finds 98 of 100 neighbours among 200,000 rows: denser, and searched harder.

A graph that holds rows already stays as it is: `contextforge index --type hnsw` rebuilds it while
searches go on. An operator's own effort stays too.
"""

from alembic import op

revision = "0014"
down_revision = "0013"

BUILD = """
    do $$
    begin
        if not exists (select from contextforge.ann_nodes)
            and (select ann_method from contextforge.installation) is distinct from 'ivfflat'
        then
            drop index contextforge.idx_knowledge_nodes_embedding;
            create index idx_knowledge_nodes_embedding
            on contextforge.ann_nodes using hnsw (embedding halfvec_cosine_ops){options};
        end if;
    end
    $$
"""
EFFORT = """
    alter table contextforge.installation alter ann_search_effort set default {new};
    update contextforge.installation set ann_search_effort = {new}
    where ann_method = 'hnsw' and ann_search_effort = {old}
"""


def upgrade() -> None:
    op.execute(BUILD.format(options=" with (m = 24, ef_construction = 128)"))
    op.execute(EFFORT.format(new=800, old=100))


def downgrade() -> None:
    op.execute(BUILD.format(options=""))
    op.execute(EFFORT.format(new=100, old=800))
