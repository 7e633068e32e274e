"""What is needed to know how good the service is today.

A trace says which variant of an experiment it belongs to, what kind of question it was, who asked
and whether it failed; feedback is one signal of one caller about one node of it, once. Questions
are kept by their words for as long as traces are, so that a change can be tried on real ones.

The ANN index says by which operator it orders. Vectors are of length 1, so cosine and inner product
order alike; a new index takes the other operator, and no search uses it before it is switched to.
"""

from alembic import op

revision = "0015"
down_revision = "0014"

EXPERIMENTS = "public.experiments"
QUESTIONS = "public.asked_questions"
AUDITS = "public.recall_audits"
SIZES = "public.size_marks"
# What the API may do besides reading.
GRANTS = {
    EXPERIMENTS: "update",
    QUESTIONS: "insert, update",
    AUDITS: "insert",
    SIZES: None,
}
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    op.execute("""
        alter table contextforge.installation
            add column ann_operator text not null default 'cosine'
            check (ann_operator in ('cosine', 'inner_product'))
    """)
    op.execute("""
        alter table public.traces
            add column caller text not null default '',
            add column intent text,
            add column cached boolean not null default false,
            add column error text,
            add column experiment_id uuid,
            add column variant text check (variant in ('a', 'b', 'interleaved')),
            add column teams text[],
            add constraint traces_variant check ((variant is null) = (experiment_id is null)),
            add constraint traces_teams check (
                (variant = 'interleaved') is not true
                or cardinality(teams) = cardinality(node_ids)
            );
        create index traces_experiment on public.traces (tenant_id, experiment_id)
        where experiment_id is not null;
        create index traces_question on public.traces (tenant_id, query_sha256, created_at);

        alter table public.feedback drop constraint feedback_verdict_check;
        alter table public.feedback rename column verdict to signal;
        update public.feedback set signal = 'not_helpful' where signal = 'unhelpful';
        alter table public.feedback
            add constraint feedback_signal check (signal in (
                'clicked', 'helpful', 'not_helpful', 'cited', 'answer_accepted'
            )),
            add column caller text not null default '',
            add column position integer check (position > 0);
        create unique index feedback_once
        on public.feedback (tenant_id, trace_id, caller, signal, coalesce(node_id, 0));
        create index feedback_caller on public.feedback (tenant_id, caller, created_at);
    """)
    op.execute(f"""
        create table {EXPERIMENTS} (
            tenant_id text not null,
            experiment_id uuid not null,
            name text not null check (length(name) between 1 and 200),
            share double precision not null check (share > 0 and share < 1),
            settings jsonb not null,
            interleaved boolean not null default false,
            started_at timestamptz not null default clock_timestamp(),
            ended_at timestamptz,
            outcome text check (outcome in ('stopped', 'rolled_back')),
            reason text,
            primary key (tenant_id, experiment_id),
            check ((ended_at is null) = (outcome is null))
        );
        create unique index experiments_running on {EXPERIMENTS} (tenant_id)
        where ended_at is null;
        create table {QUESTIONS} (
            tenant_id text not null,
            query_sha256 bytea not null check (length(query_sha256) = 32),
            question text not null,
            asked_at timestamptz not null default clock_timestamp(),
            primary key (tenant_id, query_sha256)
        );
        create table {AUDITS} (
            tenant_id text not null,
            audit_id uuid not null,
            audited_at timestamptz not null default clock_timestamp(),
            path text not null,
            expected integer not null check (expected > 0),
            found integer not null check (found between 0 and expected),
            primary key (tenant_id, audit_id)
        );
        create index recall_audits_time on {AUDITS} (tenant_id, audited_at);
        create table {SIZES} (
            tenant_id text not null,
            marked_on date not null,
            nodes bigint not null,
            vectors bigint not null,
            segments bigint not null,
            postings bigint not null,
            dead_postings bigint not null,
            bytes bigint not null,
            primary key (tenant_id, marked_on)
        );
    """)
    op.execute("""
        create view public.shown_feedback with (security_invoker = true) as
        select
            f.tenant_id, f.feedback_id, f.created_at, f.caller, f.signal, f.note,
            f.trace_id, t.created_at as shown_at, t.kind, t.query_sha256, q.question, t.intent,
            f.node_id, f.position, t.scores[f.position] as score,
            t.experiment_id, t.variant, t.teams[f.position] as team, t.settings
        from public.feedback as f
        join public.traces as t on t.tenant_id = f.tenant_id and t.trace_id = f.trace_id
        left join public.asked_questions as q
            on q.tenant_id = t.tenant_id and q.query_sha256 = t.query_sha256;
        comment on view public.shown_feedback is
        'Feedback beside what was shown: position and score of the node, the variant, the settings '
        'and the intent of the question, and its words where they are kept.';
        grant select on public.shown_feedback to contextforge_api, contextforge_analyst;
    """)
    for table, grants in GRANTS.items():
        op.execute(f"""
            alter table {table} enable row level security;
            alter table {table} force row level security;
            create policy owner_all on {table} to contextforge_owner using (true) with check (true);
            create policy api_tenants on {table} to contextforge_api
                using ({API_TENANTS}) with check ({API_TENANTS});
            create policy analyst_tenants on {table} for select to contextforge_analyst
                using ({ANALYST_TENANTS});
            grant select on {table} to contextforge_api, contextforge_analyst;
        """)
        if grants is not None:
            op.execute(f"grant {grants} on {table} to contextforge_api")


def downgrade() -> None:
    # Earlier releases order by cosine alone.
    op.execute("""
        do $$
        declare
            definition text;
        begin
            if (select i.ann_operator from contextforge.installation as i) = 'inner_product' then
                definition := replace(
                    pg_get_indexdef('contextforge.idx_knowledge_nodes_embedding'::regclass),
                    'halfvec_ip_ops', 'halfvec_cosine_ops'
                );
                drop index contextforge.idx_knowledge_nodes_embedding;
                execute definition;
            end if;
        end
        $$;
        alter table contextforge.installation drop column ann_operator;
    """)
    op.execute(f"""
        drop view public.shown_feedback;
        drop table {SIZES};
        drop table {AUDITS};
        drop table {QUESTIONS};
        drop table {EXPERIMENTS};
        delete from public.feedback where signal not in ('helpful', 'not_helpful');
        drop index public.feedback_once;
        drop index public.feedback_caller;
        alter table public.feedback
            drop constraint feedback_signal, drop column caller, drop column position;
        update public.feedback set signal = 'unhelpful' where signal = 'not_helpful';
        alter table public.feedback rename column signal to verdict;
        alter table public.feedback add constraint feedback_verdict_check
            check (verdict in ('helpful', 'unhelpful'));
        drop index public.traces_experiment;
        drop index public.traces_question;
        alter table public.traces
            drop constraint traces_variant, drop constraint traces_teams,
            drop column caller, drop column intent, drop column cached, drop column error,
            drop column experiment_id, drop column variant, drop column teams;
    """)
