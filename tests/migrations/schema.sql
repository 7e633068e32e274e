CREATE SCHEMA contextforge;

ALTER SCHEMA contextforge OWNER TO contextforge_owner;

CREATE SCHEMA contextforge_queue;

ALTER SCHEMA contextforge_queue OWNER TO contextforge_owner;

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

CREATE SEQUENCE contextforge.node_ids
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge.node_ids OWNER TO contextforge_owner;

CREATE TABLE public.knowledge_nodes (
    tenant_id text NOT NULL,
    node_id integer DEFAULT nextval('contextforge.node_ids'::regclass) NOT NULL,
    external_id text NOT NULL,
    dataset_name text DEFAULT 'default'::text NOT NULL,
    node_type text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    summary text DEFAULT ''::text NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    parent_id integer,
    section_path text,
    order_index integer,
    header text,
    doc_title text,
    url text,
    lang text,
    space_id text,
    acl text[] DEFAULT '{}'::text[] NOT NULL,
    token_count integer,
    content_hash bytea NOT NULL,
    embedder_version text,
    searchable_text tsvector,
    embedding public.vector(1024),
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT knowledge_nodes_dataset_name_check CHECK ((dataset_name <> ''::text)),
    CONSTRAINT knowledge_nodes_external_id_check CHECK ((external_id <> ''::text)),
    CONSTRAINT knowledge_nodes_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text)),
    CONSTRAINT knowledge_nodes_node_type_check CHECK ((node_type <> ''::text)),
    CONSTRAINT knowledge_nodes_tenant_id_check CHECK ((tenant_id ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'::text)),
    CONSTRAINT knowledge_nodes_token_count_check CHECK ((token_count >= 0))
);

ALTER TABLE ONLY public.knowledge_nodes FORCE ROW LEVEL SECURITY;

ALTER TABLE public.knowledge_nodes OWNER TO contextforge_owner;

CREATE TYPE contextforge.node_draft AS (
	item integer,
	parent text,
	searchable boolean,
	node public.knowledge_nodes
);

ALTER TYPE contextforge.node_draft OWNER TO contextforge_owner;

CREATE TYPE contextforge.search_filter AS (
	node_types text[],
	dataset_name text,
	lang text,
	space_id text,
	article_ids integer[],
	node_ids integer[],
	acl_groups text[]
);

ALTER TYPE contextforge.search_filter OWNER TO contextforge_owner;

CREATE TYPE contextforge_queue.procrastinate_job_event_type AS ENUM (
    'deferred',
    'started',
    'deferred_for_retry',
    'failed',
    'succeeded',
    'cancelled',
    'abort_requested',
    'aborted',
    'scheduled',
    'retried'
);

ALTER TYPE contextforge_queue.procrastinate_job_event_type OWNER TO contextforge_owner;

CREATE TYPE contextforge_queue.procrastinate_job_status AS ENUM (
    'todo',
    'doing',
    'succeeded',
    'failed',
    'cancelled',
    'aborting',
    'aborted'
);

ALTER TYPE contextforge_queue.procrastinate_job_status OWNER TO contextforge_owner;

CREATE TYPE contextforge_queue.procrastinate_job_to_defer_v1 AS (
	queue_name character varying,
	task_name character varying,
	priority integer,
	lock text,
	queueing_lock text,
	args jsonb,
	scheduled_at timestamp with time zone
);

ALTER TYPE contextforge_queue.procrastinate_job_to_defer_v1 OWNER TO contextforge_owner;

CREATE TABLE contextforge.jobs (
    job_id uuid DEFAULT gen_random_uuid() NOT NULL,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    arguments jsonb DEFAULT '{}'::jsonb NOT NULL,
    order_key text,
    state text DEFAULT 'queued'::text NOT NULL,
    progress_done integer DEFAULT 0 NOT NULL,
    progress_total integer,
    result jsonb,
    error jsonb,
    cancel_requested boolean DEFAULT false NOT NULL,
    queue_id bigint,
    document_count integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT jobs_arguments_check CHECK ((jsonb_typeof(arguments) = 'object'::text)),
    CONSTRAINT jobs_check CHECK (((finished_at IS NULL) = (state = ANY (ARRAY['queued'::text, 'running'::text])))),
    CONSTRAINT jobs_kind_check CHECK ((kind ~ '^[a-z][a-z_]{0,62}$'::text)),
    CONSTRAINT jobs_progress_done_check CHECK ((progress_done >= 0)),
    CONSTRAINT jobs_progress_total_check CHECK ((progress_total >= 0)),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);

ALTER TABLE contextforge.jobs OWNER TO contextforge_owner;

CREATE TABLE contextforge_queue.procrastinate_jobs (
    id bigint NOT NULL,
    queue_name character varying(128) NOT NULL,
    task_name character varying(128) NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    lock text,
    queueing_lock text,
    args jsonb DEFAULT '{}'::jsonb NOT NULL,
    status contextforge_queue.procrastinate_job_status DEFAULT 'todo'::contextforge_queue.procrastinate_job_status NOT NULL,
    scheduled_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    abort_requested boolean DEFAULT false NOT NULL,
    worker_id bigint,
    CONSTRAINT check_not_todo_abort_requested CHECK ((NOT ((status = 'todo'::contextforge_queue.procrastinate_job_status) AND (abort_requested = true))))
);

ALTER TABLE contextforge_queue.procrastinate_jobs OWNER TO contextforge_owner;

CREATE TABLE contextforge.analyst_grants (
    role_name name NOT NULL,
    tenant_id text NOT NULL,
    granted_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE contextforge.analyst_grants OWNER TO contextforge_owner;

CREATE TABLE contextforge.ann_nodes (
    tenant_id text NOT NULL,
    node_id integer NOT NULL,
    article_id integer NOT NULL,
    node_type text NOT NULL,
    dataset_name text NOT NULL,
    lang text,
    space_id text,
    acl text[],
    embedding public.halfvec(1024) NOT NULL
);
ALTER TABLE ONLY contextforge.ann_nodes ALTER COLUMN embedding SET STORAGE PLAIN;

ALTER TABLE ONLY contextforge.ann_nodes FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.ann_nodes OWNER TO contextforge_owner;

CREATE TABLE contextforge.api_keys (
    key_id text NOT NULL,
    key_hash bytea NOT NULL,
    display_name text NOT NULL,
    tenant_ids text[] NOT NULL,
    scopes text[] NOT NULL,
    acl_groups text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_keys_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['search'::text, 'ingest'::text, 'admin'::text]))),
    CONSTRAINT api_keys_tenant_ids_check CHECK ((cardinality(tenant_ids) > 0))
);

ALTER TABLE contextforge.api_keys OWNER TO contextforge_owner;

CREATE SEQUENCE contextforge.doc_ids
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge.doc_ids OWNER TO contextforge_owner;

CREATE TABLE contextforge.egress_policies (
    tenant_id text NOT NULL,
    policy text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT egress_policies_policy_check CHECK ((policy = ANY (ARRAY['off'::text, 'expansion'::text, 'synthesis'::text, 'all'::text])))
);

ALTER TABLE ONLY contextforge.egress_policies FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.egress_policies OWNER TO contextforge_owner;

CREATE TABLE contextforge.embedder_profiles (
    embedder_version text NOT NULL,
    dimension integer NOT NULL,
    raw_cosines double precision[] DEFAULT '{}'::double precision[] NOT NULL,
    calibrated_cosines double precision[] DEFAULT '{}'::double precision[] NOT NULL,
    fitted_at timestamp with time zone,
    CONSTRAINT embedder_profiles_check CHECK ((cardinality(raw_cosines) = cardinality(calibrated_cosines))),
    CONSTRAINT embedder_profiles_dimension_check CHECK (((dimension >= 1) AND (dimension <= 2000)))
);

ALTER TABLE contextforge.embedder_profiles OWNER TO contextforge_owner;

COMMENT ON TABLE contextforge.embedder_profiles IS 'Monotone piecewise-linear map from raw to calibrated cosine; no points = identity.';

CREATE VIEW contextforge.granted_tenants WITH (security_barrier='true') AS
 SELECT g.tenant_id
   FROM (contextforge.analyst_grants g
     JOIN pg_roles r ON ((r.rolname = g.role_name)))
  WHERE pg_has_role(CURRENT_USER, r.oid, 'usage'::text);

ALTER VIEW contextforge.granted_tenants OWNER TO contextforge_owner;

CREATE TABLE contextforge.installation (
    only_row boolean DEFAULT true NOT NULL,
    embedding_dim integer NOT NULL,
    exact_limit integer DEFAULT 20000 NOT NULL,
    ann_method text DEFAULT 'hnsw'::text NOT NULL,
    ann_search_effort integer DEFAULT 800 NOT NULL,
    prune_from integer DEFAULT 50000 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ann_operator text DEFAULT 'cosine'::text NOT NULL,
    CONSTRAINT installation_ann_method_check CHECK ((ann_method = ANY (ARRAY['hnsw'::text, 'ivfflat'::text]))),
    CONSTRAINT installation_ann_operator_check CHECK ((ann_operator = ANY (ARRAY['cosine'::text, 'inner_product'::text]))),
    CONSTRAINT installation_ann_search_effort_check CHECK ((ann_search_effort > 0)),
    CONSTRAINT installation_embedding_dim_check CHECK (((embedding_dim >= 1) AND (embedding_dim <= 2000))),
    CONSTRAINT installation_exact_limit_check CHECK ((exact_limit >= 0)),
    CONSTRAINT installation_only_row_check CHECK (only_row),
    CONSTRAINT installation_prune_from_check CHECK ((prune_from >= 0))
);

ALTER TABLE contextforge.installation OWNER TO contextforge_owner;

CREATE TABLE contextforge.job_documents (
    job_id uuid NOT NULL,
    "position" integer NOT NULL,
    name text NOT NULL,
    content bytea NOT NULL,
    CONSTRAINT job_documents_name_check CHECK ((name <> ''::text))
);

ALTER TABLE contextforge.job_documents OWNER TO contextforge_owner;

CREATE UNLOGGED TABLE contextforge.key_buckets (
    key_id text NOT NULL,
    full_at timestamp with time zone NOT NULL
);

ALTER TABLE contextforge.key_buckets OWNER TO contextforge_owner;

CREATE TABLE contextforge.link_marks (
    tenant_id text NOT NULL,
    mark_id bigint NOT NULL
);

ALTER TABLE ONLY contextforge.link_marks FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.link_marks OWNER TO contextforge_owner;

ALTER TABLE contextforge.link_marks ALTER COLUMN mark_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME contextforge.link_marks_mark_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE contextforge.next_embeddings (
    tenant_id text NOT NULL,
    node_id integer NOT NULL,
    embedder_version text NOT NULL,
    content_hash bytea NOT NULL,
    embedding public.vector NOT NULL,
    CONSTRAINT next_embeddings_embedder_version_check CHECK ((embedder_version <> ''::text)),
    CONSTRAINT next_embeddings_embedding_check CHECK ((public.vector_dims(embedding) <= 1024))
);

ALTER TABLE ONLY contextforge.next_embeddings FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.next_embeddings OWNER TO contextforge_owner;

CREATE TABLE contextforge.node_references (
    tenant_id text NOT NULL,
    source_id integer NOT NULL,
    kind text NOT NULL,
    target text NOT NULL,
    CONSTRAINT node_references_kind_check CHECK ((kind = ANY (ARRAY['path'::text, 'url'::text, 'title'::text])))
);

ALTER TABLE ONLY contextforge.node_references FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.node_references OWNER TO contextforge_owner;

CREATE TABLE contextforge.postings (
    tenant_id text NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    segment_id bigint NOT NULL,
    documents integer NOT NULL,
    packed bigint[] NOT NULL
);
ALTER TABLE ONLY contextforge.postings ALTER COLUMN packed SET STORAGE EXTERNAL;

ALTER TABLE ONLY contextforge.postings FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.postings OWNER TO contextforge_owner;

CREATE TABLE contextforge.rank_states (
    tenant_id text NOT NULL,
    computed_at timestamp with time zone DEFAULT now() NOT NULL,
    articles integer NOT NULL,
    links integer NOT NULL,
    linked_nodes integer NOT NULL,
    largest_rank double precision NOT NULL,
    CONSTRAINT rank_states_articles_check CHECK ((articles >= 0)),
    CONSTRAINT rank_states_largest_rank_check CHECK ((largest_rank >= (0)::double precision)),
    CONSTRAINT rank_states_linked_nodes_check CHECK ((linked_nodes >= 0)),
    CONSTRAINT rank_states_links_check CHECK ((links >= 0))
);

ALTER TABLE ONLY contextforge.rank_states FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.rank_states OWNER TO contextforge_owner;

CREATE TABLE contextforge.replaced_settings (
    tenant_id text NOT NULL,
    version integer NOT NULL,
    settings jsonb NOT NULL,
    replaced_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT replaced_settings_settings_check CHECK ((jsonb_typeof(settings) = 'object'::text)),
    CONSTRAINT replaced_settings_version_check CHECK ((version > 0))
);

ALTER TABLE ONLY contextforge.replaced_settings FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.replaced_settings OWNER TO contextforge_owner;

CREATE TABLE contextforge.schema_version (
    version_num character varying(32) NOT NULL
);

ALTER TABLE contextforge.schema_version OWNER TO contextforge_owner;

CREATE TABLE contextforge.search_nodes (
    tenant_id text NOT NULL,
    node_id integer NOT NULL,
    doc_id integer NOT NULL,
    article_id integer NOT NULL,
    text_length integer NOT NULL,
    in_ann boolean DEFAULT false NOT NULL,
    node_type text NOT NULL,
    dataset_name text NOT NULL,
    lang text,
    space_id text,
    acl text[],
    embedding public.halfvec
);
ALTER TABLE ONLY contextforge.search_nodes ALTER COLUMN embedding SET STORAGE PLAIN;

ALTER TABLE ONLY contextforge.search_nodes FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.search_nodes OWNER TO contextforge_owner;

CREATE SEQUENCE contextforge.segment_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge.segment_ids OWNER TO contextforge_owner;

CREATE TABLE contextforge.segments (
    tenant_id text NOT NULL,
    segment_id bigint NOT NULL,
    documents integer NOT NULL,
    total_length bigint NOT NULL,
    postings bigint NOT NULL,
    live_postings bigint NOT NULL,
    text_configs regconfig[] DEFAULT '{}'::regconfig[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY contextforge.segments FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.segments OWNER TO contextforge_owner;

CREATE TABLE contextforge.tenant_profiles (
    tenant_id text NOT NULL,
    lang text DEFAULT 'en'::text NOT NULL,
    text_config regconfig DEFAULT 'english'::regconfig NOT NULL,
    embedder_version text,
    embedding_dim integer,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT tenant_profiles_embedding_dim_check CHECK (((embedding_dim >= 1) AND (embedding_dim <= 1024))),
    CONSTRAINT tenant_profiles_settings_check CHECK ((jsonb_typeof(settings) = 'object'::text))
);

ALTER TABLE ONLY contextforge.tenant_profiles FORCE ROW LEVEL SECURITY;

ALTER TABLE contextforge.tenant_profiles OWNER TO contextforge_owner;

CREATE TABLE contextforge.tenants (
    tenant_id text NOT NULL,
    display_name text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenants_tenant_id_check CHECK ((tenant_id ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'::text))
);

ALTER TABLE contextforge.tenants OWNER TO contextforge_owner;

CREATE TABLE contextforge_queue.procrastinate_events (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    type contextforge_queue.procrastinate_job_event_type,
    at timestamp with time zone DEFAULT now()
);

ALTER TABLE contextforge_queue.procrastinate_events OWNER TO contextforge_owner;

CREATE SEQUENCE contextforge_queue.procrastinate_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge_queue.procrastinate_events_id_seq OWNER TO contextforge_owner;

ALTER SEQUENCE contextforge_queue.procrastinate_events_id_seq OWNED BY contextforge_queue.procrastinate_events.id;

CREATE SEQUENCE contextforge_queue.procrastinate_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge_queue.procrastinate_jobs_id_seq OWNER TO contextforge_owner;

ALTER SEQUENCE contextforge_queue.procrastinate_jobs_id_seq OWNED BY contextforge_queue.procrastinate_jobs.id;

CREATE TABLE contextforge_queue.procrastinate_periodic_defers (
    id bigint NOT NULL,
    task_name character varying(128) NOT NULL,
    defer_timestamp bigint,
    job_id bigint,
    periodic_id character varying(128) DEFAULT ''::character varying NOT NULL
);

ALTER TABLE contextforge_queue.procrastinate_periodic_defers OWNER TO contextforge_owner;

CREATE SEQUENCE contextforge_queue.procrastinate_periodic_defers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE contextforge_queue.procrastinate_periodic_defers_id_seq OWNER TO contextforge_owner;

ALTER SEQUENCE contextforge_queue.procrastinate_periodic_defers_id_seq OWNED BY contextforge_queue.procrastinate_periodic_defers.id;

CREATE TABLE contextforge_queue.procrastinate_workers (
    id bigint NOT NULL,
    last_heartbeat timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE contextforge_queue.procrastinate_workers OWNER TO contextforge_owner;

ALTER TABLE contextforge_queue.procrastinate_workers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME contextforge_queue.procrastinate_workers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.asked_questions (
    tenant_id text NOT NULL,
    query_sha256 bytea NOT NULL,
    question text NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT asked_questions_query_sha256_check CHECK ((length(query_sha256) = 32))
);

ALTER TABLE ONLY public.asked_questions FORCE ROW LEVEL SECURITY;

ALTER TABLE public.asked_questions OWNER TO contextforge_owner;

CREATE TABLE public.egress_calls (
    tenant_id text NOT NULL,
    call_id uuid NOT NULL,
    purpose text NOT NULL,
    consent text NOT NULL,
    model text NOT NULL,
    text_sha256 bytea NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    outcome text,
    attempts integer,
    input_tokens integer,
    output_tokens integer,
    CONSTRAINT egress_calls_check CHECK (((finished_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT egress_calls_consent_check CHECK ((consent = ANY (ARRAY['policy'::text, 'key'::text]))),
    CONSTRAINT egress_calls_outcome_check CHECK ((outcome = ANY (ARRAY['answered'::text, 'failed'::text]))),
    CONSTRAINT egress_calls_purpose_check CHECK ((purpose = ANY (ARRAY['expansion'::text, 'synthesis'::text]))),
    CONSTRAINT egress_calls_text_sha256_check CHECK ((length(text_sha256) = 32))
);

ALTER TABLE ONLY public.egress_calls FORCE ROW LEVEL SECURITY;

ALTER TABLE public.egress_calls OWNER TO contextforge_owner;

CREATE TABLE public.experiments (
    tenant_id text NOT NULL,
    experiment_id uuid NOT NULL,
    name text NOT NULL,
    share double precision NOT NULL,
    settings jsonb NOT NULL,
    interleaved boolean DEFAULT false NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    reason text,
    CONSTRAINT experiments_check CHECK (((ended_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT experiments_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT experiments_outcome_check CHECK ((outcome = ANY (ARRAY['stopped'::text, 'rolled_back'::text]))),
    CONSTRAINT experiments_share_check CHECK (((share > (0)::double precision) AND (share < (1)::double precision)))
);

ALTER TABLE ONLY public.experiments FORCE ROW LEVEL SECURITY;

ALTER TABLE public.experiments OWNER TO contextforge_owner;

CREATE TABLE public.feedback (
    tenant_id text NOT NULL,
    feedback_id uuid NOT NULL,
    trace_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    key_id text NOT NULL,
    signal text CONSTRAINT feedback_verdict_not_null NOT NULL,
    node_id integer,
    note text,
    caller text DEFAULT ''::text NOT NULL,
    "position" integer,
    CONSTRAINT feedback_position_check CHECK (("position" > 0)),
    CONSTRAINT feedback_signal CHECK ((signal = ANY (ARRAY['clicked'::text, 'helpful'::text, 'not_helpful'::text, 'cited'::text, 'answer_accepted'::text])))
);

ALTER TABLE ONLY public.feedback FORCE ROW LEVEL SECURITY;

ALTER TABLE public.feedback OWNER TO contextforge_owner;

CREATE TABLE public.node_links (
    tenant_id text NOT NULL,
    source_id integer NOT NULL,
    target_id integer NOT NULL,
    link_type text DEFAULT 'link'::text NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT node_links_link_type_check CHECK ((link_type <> ''::text)),
    CONSTRAINT node_links_weight_check CHECK (((weight > (0)::double precision) AND (weight < 'Infinity'::double precision)))
);

ALTER TABLE ONLY public.node_links FORCE ROW LEVEL SECURITY;

ALTER TABLE public.node_links OWNER TO contextforge_owner;

CREATE TABLE public.node_ranks (
    tenant_id text NOT NULL,
    node_id integer NOT NULL,
    rank double precision NOT NULL,
    computed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT node_ranks_rank_check CHECK ((rank >= (0)::double precision))
);

ALTER TABLE ONLY public.node_ranks FORCE ROW LEVEL SECURITY;

ALTER TABLE public.node_ranks OWNER TO contextforge_owner;

CREATE TABLE public.recall_audits (
    tenant_id text NOT NULL,
    audit_id uuid NOT NULL,
    audited_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    path text NOT NULL,
    expected integer NOT NULL,
    found integer NOT NULL,
    CONSTRAINT recall_audits_check CHECK (((found >= 0) AND (found <= expected))),
    CONSTRAINT recall_audits_expected_check CHECK ((expected > 0))
);

ALTER TABLE ONLY public.recall_audits FORCE ROW LEVEL SECURITY;

ALTER TABLE public.recall_audits OWNER TO contextforge_owner;

CREATE TABLE public.traces (
    tenant_id text NOT NULL,
    trace_id uuid NOT NULL,
    kind text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    key_id text NOT NULL,
    query_sha256 bytea NOT NULL,
    settings jsonb NOT NULL,
    node_ids integer[] NOT NULL,
    scores double precision[] NOT NULL,
    steps text[] NOT NULL,
    milliseconds double precision[] NOT NULL,
    caller text DEFAULT ''::text NOT NULL,
    intent text,
    cached boolean DEFAULT false NOT NULL,
    error text,
    experiment_id uuid,
    variant text,
    teams text[],
    CONSTRAINT traces_check CHECK ((cardinality(scores) = cardinality(node_ids))),
    CONSTRAINT traces_check1 CHECK ((cardinality(milliseconds) = cardinality(steps))),
    CONSTRAINT traces_kind_check CHECK ((kind = ANY (ARRAY['search'::text, 'context'::text, 'answer'::text]))),
    CONSTRAINT traces_query_sha256_check CHECK ((length(query_sha256) = 32)),
    CONSTRAINT traces_teams CHECK ((((variant = 'interleaved'::text) IS NOT TRUE) OR (cardinality(teams) = cardinality(node_ids)))),
    CONSTRAINT traces_variant CHECK (((variant IS NULL) = (experiment_id IS NULL))),
    CONSTRAINT traces_variant_check CHECK ((variant = ANY (ARRAY['a'::text, 'b'::text, 'interleaved'::text])))
);

ALTER TABLE ONLY public.traces FORCE ROW LEVEL SECURITY;

ALTER TABLE public.traces OWNER TO contextforge_owner;

CREATE VIEW public.shown_feedback WITH (security_invoker='true') AS
 SELECT f.tenant_id,
    f.feedback_id,
    f.created_at,
    f.caller,
    f.signal,
    f.note,
    f.trace_id,
    t.created_at AS shown_at,
    t.kind,
    t.query_sha256,
    q.question,
    t.intent,
    f.node_id,
    f."position",
    t.scores[f."position"] AS score,
    t.experiment_id,
    t.variant,
    t.teams[f."position"] AS team,
    t.settings
   FROM ((public.feedback f
     JOIN public.traces t ON (((t.tenant_id = f.tenant_id) AND (t.trace_id = f.trace_id))))
     LEFT JOIN public.asked_questions q ON (((q.tenant_id = t.tenant_id) AND (q.query_sha256 = t.query_sha256))));

ALTER VIEW public.shown_feedback OWNER TO contextforge_owner;

COMMENT ON VIEW public.shown_feedback IS 'Feedback beside what was shown: position and score of the node, the variant, the settings and the intent of the question, and its words where they are kept.';

CREATE TABLE public.size_marks (
    tenant_id text NOT NULL,
    marked_on date NOT NULL,
    nodes bigint NOT NULL,
    vectors bigint NOT NULL,
    segments bigint NOT NULL,
    postings bigint NOT NULL,
    dead_postings bigint NOT NULL,
    bytes bigint NOT NULL
);

ALTER TABLE ONLY public.size_marks FORCE ROW LEVEL SECURITY;

ALTER TABLE public.size_marks OWNER TO contextforge_owner;

ALTER TABLE ONLY contextforge_queue.procrastinate_events ALTER COLUMN id SET DEFAULT nextval('contextforge_queue.procrastinate_events_id_seq'::regclass);

ALTER TABLE ONLY contextforge_queue.procrastinate_jobs ALTER COLUMN id SET DEFAULT nextval('contextforge_queue.procrastinate_jobs_id_seq'::regclass);

ALTER TABLE ONLY contextforge_queue.procrastinate_periodic_defers ALTER COLUMN id SET DEFAULT nextval('contextforge_queue.procrastinate_periodic_defers_id_seq'::regclass);

ALTER TABLE ONLY contextforge.analyst_grants
    ADD CONSTRAINT analyst_grants_pkey PRIMARY KEY (role_name, tenant_id);

ALTER TABLE ONLY contextforge.ann_nodes
    ADD CONSTRAINT ann_nodes_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY contextforge.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);

ALTER TABLE ONLY contextforge.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);

ALTER TABLE ONLY contextforge.egress_policies
    ADD CONSTRAINT egress_policies_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY contextforge.embedder_profiles
    ADD CONSTRAINT embedder_profiles_pkey PRIMARY KEY (embedder_version);

ALTER TABLE ONLY contextforge.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY contextforge.job_documents
    ADD CONSTRAINT job_documents_pkey PRIMARY KEY (job_id, "position");

ALTER TABLE ONLY contextforge.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY contextforge.key_buckets
    ADD CONSTRAINT key_buckets_pkey PRIMARY KEY (key_id);

ALTER TABLE ONLY contextforge.link_marks
    ADD CONSTRAINT link_marks_pkey PRIMARY KEY (tenant_id, mark_id);

ALTER TABLE ONLY contextforge.next_embeddings
    ADD CONSTRAINT next_embeddings_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY contextforge.node_references
    ADD CONSTRAINT node_references_pkey PRIMARY KEY (tenant_id, source_id, kind, target);

ALTER TABLE ONLY contextforge.postings
    ADD CONSTRAINT postings_pkey PRIMARY KEY (tenant_id, lexeme, segment_id);

ALTER TABLE ONLY contextforge.rank_states
    ADD CONSTRAINT rank_states_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY contextforge.replaced_settings
    ADD CONSTRAINT replaced_settings_pkey PRIMARY KEY (tenant_id, version);

ALTER TABLE ONLY contextforge.schema_version
    ADD CONSTRAINT schema_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY contextforge.search_nodes
    ADD CONSTRAINT search_nodes_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY contextforge.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (tenant_id, segment_id);

ALTER TABLE ONLY contextforge.tenant_profiles
    ADD CONSTRAINT tenant_profiles_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY contextforge.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY contextforge_queue.procrastinate_events
    ADD CONSTRAINT procrastinate_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY contextforge_queue.procrastinate_jobs
    ADD CONSTRAINT procrastinate_jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY contextforge_queue.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY contextforge_queue.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_unique UNIQUE (task_name, periodic_id, defer_timestamp);

ALTER TABLE ONLY contextforge_queue.procrastinate_workers
    ADD CONSTRAINT procrastinate_workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.asked_questions
    ADD CONSTRAINT asked_questions_pkey PRIMARY KEY (tenant_id, query_sha256);

ALTER TABLE ONLY public.egress_calls
    ADD CONSTRAINT egress_calls_pkey PRIMARY KEY (tenant_id, call_id);

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_pkey PRIMARY KEY (tenant_id, experiment_id);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (tenant_id, feedback_id);

ALTER TABLE ONLY public.knowledge_nodes
    ADD CONSTRAINT knowledge_nodes_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY public.knowledge_nodes
    ADD CONSTRAINT knowledge_nodes_tenant_id_dataset_name_external_id_key UNIQUE (tenant_id, dataset_name, external_id);

ALTER TABLE ONLY public.node_links
    ADD CONSTRAINT node_links_pkey PRIMARY KEY (tenant_id, source_id, target_id, link_type);

ALTER TABLE ONLY public.node_ranks
    ADD CONSTRAINT node_ranks_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY public.recall_audits
    ADD CONSTRAINT recall_audits_pkey PRIMARY KEY (tenant_id, audit_id);

ALTER TABLE ONLY public.size_marks
    ADD CONSTRAINT size_marks_pkey PRIMARY KEY (tenant_id, marked_on);

ALTER TABLE ONLY public.traces
    ADD CONSTRAINT traces_pkey PRIMARY KEY (tenant_id, trace_id);

CREATE INDEX idx_jobs_open ON contextforge.jobs USING btree (queue_id) WHERE (finished_at IS NULL);

CREATE INDEX idx_jobs_tenant ON contextforge.jobs USING btree (tenant_id, created_at DESC, job_id);

CREATE INDEX idx_knowledge_nodes_embedding ON contextforge.ann_nodes USING hnsw (embedding public.halfvec_cosine_ops) WITH (m='24', ef_construction='128');

CREATE INDEX idx_postings_segment ON contextforge.postings USING btree (segment_id);

CREATE INDEX idx_search_nodes_ann_tail ON contextforge.search_nodes USING btree (tenant_id, node_id) WHERE ((NOT in_ann) AND (embedding IS NOT NULL));

CREATE INDEX idx_search_nodes_dataset ON contextforge.search_nodes USING btree (dataset_name, tenant_id);

CREATE INDEX idx_search_nodes_doc ON contextforge.search_nodes USING btree (doc_id);

CREATE INDEX idx_procrastinate_jobs_worker_not_null ON contextforge_queue.procrastinate_jobs USING btree (worker_id) WHERE ((worker_id IS NOT NULL) AND (status = 'doing'::contextforge_queue.procrastinate_job_status));

CREATE INDEX idx_procrastinate_workers_last_heartbeat ON contextforge_queue.procrastinate_workers USING btree (last_heartbeat);

CREATE INDEX procrastinate_events_job_id_fkey_v1 ON contextforge_queue.procrastinate_events USING btree (job_id);

CREATE INDEX procrastinate_jobs_id_lock_idx_v1 ON contextforge_queue.procrastinate_jobs USING btree (id, lock) WHERE (status = ANY (ARRAY['todo'::contextforge_queue.procrastinate_job_status, 'doing'::contextforge_queue.procrastinate_job_status]));

CREATE UNIQUE INDEX procrastinate_jobs_lock_idx_v1 ON contextforge_queue.procrastinate_jobs USING btree (lock) WHERE (status = 'doing'::contextforge_queue.procrastinate_job_status);

CREATE INDEX procrastinate_jobs_priority_idx_v1 ON contextforge_queue.procrastinate_jobs USING btree (priority DESC, id) WHERE (status = 'todo'::contextforge_queue.procrastinate_job_status);

CREATE INDEX procrastinate_jobs_queue_name_idx_v1 ON contextforge_queue.procrastinate_jobs USING btree (queue_name);

CREATE UNIQUE INDEX procrastinate_jobs_queueing_lock_idx_v1 ON contextforge_queue.procrastinate_jobs USING btree (queueing_lock) WHERE (status = 'todo'::contextforge_queue.procrastinate_job_status);

CREATE INDEX procrastinate_periodic_defers_job_id_fkey_v1 ON contextforge_queue.procrastinate_periodic_defers USING btree (job_id);

CREATE INDEX egress_calls_started ON public.egress_calls USING btree (tenant_id, started_at);

CREATE UNIQUE INDEX experiments_running ON public.experiments USING btree (tenant_id) WHERE (ended_at IS NULL);

CREATE INDEX feedback_caller ON public.feedback USING btree (tenant_id, caller, created_at);

CREATE UNIQUE INDEX feedback_once ON public.feedback USING btree (tenant_id, trace_id, caller, signal, COALESCE(node_id, 0));

CREATE INDEX feedback_trace ON public.feedback USING btree (tenant_id, trace_id);

CREATE INDEX idx_knowledge_nodes_dataset ON public.knowledge_nodes USING btree (tenant_id, dataset_name, node_id);

CREATE INDEX idx_knowledge_nodes_searchable ON public.knowledge_nodes USING gin (searchable_text);

CREATE INDEX idx_knowledge_nodes_tenant ON public.knowledge_nodes USING btree (tenant_id, parent_id, order_index);

CREATE INDEX idx_knowledge_nodes_title ON public.knowledge_nodes USING btree (tenant_id, lower(title)) WHERE (parent_id IS NULL);

CREATE INDEX idx_knowledge_nodes_type ON public.knowledge_nodes USING btree (tenant_id, node_type, node_id);

CREATE INDEX idx_knowledge_nodes_url ON public.knowledge_nodes USING btree (tenant_id, url) WHERE (url IS NOT NULL);

CREATE INDEX idx_node_links_target ON public.node_links USING btree (tenant_id, target_id);

CREATE INDEX recall_audits_time ON public.recall_audits USING btree (tenant_id, audited_at);

CREATE INDEX traces_created ON public.traces USING btree (tenant_id, created_at);

CREATE INDEX traces_experiment ON public.traces USING btree (tenant_id, experiment_id) WHERE (experiment_id IS NOT NULL);

CREATE INDEX traces_question ON public.traces USING btree (tenant_id, query_sha256, created_at);

CREATE TRIGGER procrastinate_trigger_abort_requested_events_v1 AFTER UPDATE OF abort_requested ON contextforge_queue.procrastinate_jobs FOR EACH ROW WHEN ((new.abort_requested = true)) EXECUTE FUNCTION contextforge_queue.procrastinate_trigger_abort_requested_events_procedure_v1();

CREATE TRIGGER procrastinate_trigger_delete_jobs_v1 BEFORE DELETE ON contextforge_queue.procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION contextforge_queue.procrastinate_unlink_periodic_defers_v1();

CREATE TRIGGER procrastinate_trigger_scheduled_events_v1 AFTER INSERT OR UPDATE ON contextforge_queue.procrastinate_jobs FOR EACH ROW WHEN (((new.scheduled_at IS NOT NULL) AND (new.status = 'todo'::contextforge_queue.procrastinate_job_status))) EXECUTE FUNCTION contextforge_queue.procrastinate_trigger_function_scheduled_events_v1();

CREATE TRIGGER procrastinate_trigger_status_events_insert_v1 AFTER INSERT ON contextforge_queue.procrastinate_jobs FOR EACH ROW WHEN ((new.status = 'todo'::contextforge_queue.procrastinate_job_status)) EXECUTE FUNCTION contextforge_queue.procrastinate_trigger_function_status_events_insert_v1();

CREATE TRIGGER procrastinate_trigger_status_events_update_v1 AFTER UPDATE OF status ON contextforge_queue.procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION contextforge_queue.procrastinate_trigger_function_status_events_update_v1();

ALTER TABLE ONLY contextforge.analyst_grants
    ADD CONSTRAINT analyst_grants_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES contextforge.tenants(tenant_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.job_documents
    ADD CONSTRAINT job_documents_job_id_fkey FOREIGN KEY (job_id) REFERENCES contextforge.jobs(job_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.jobs
    ADD CONSTRAINT jobs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES contextforge.tenants(tenant_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.key_buckets
    ADD CONSTRAINT key_buckets_key_id_fkey FOREIGN KEY (key_id) REFERENCES contextforge.api_keys(key_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.next_embeddings
    ADD CONSTRAINT next_embeddings_tenant_id_node_id_fkey FOREIGN KEY (tenant_id, node_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.node_references
    ADD CONSTRAINT node_references_tenant_id_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.replaced_settings
    ADD CONSTRAINT replaced_settings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES contextforge.tenant_profiles(tenant_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge_queue.procrastinate_events
    ADD CONSTRAINT procrastinate_events_job_id_fkey FOREIGN KEY (job_id) REFERENCES contextforge_queue.procrastinate_jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge_queue.procrastinate_jobs
    ADD CONSTRAINT procrastinate_jobs_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES contextforge_queue.procrastinate_workers(id) ON DELETE SET NULL;

ALTER TABLE ONLY contextforge_queue.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_job_id_fkey FOREIGN KEY (job_id) REFERENCES contextforge_queue.procrastinate_jobs(id);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_tenant_id_trace_id_fkey FOREIGN KEY (tenant_id, trace_id) REFERENCES public.traces(tenant_id, trace_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.knowledge_nodes
    ADD CONSTRAINT knowledge_nodes_tenant_id_parent_id_fkey FOREIGN KEY (tenant_id, parent_id) REFERENCES public.knowledge_nodes(tenant_id, node_id);

ALTER TABLE ONLY public.node_links
    ADD CONSTRAINT node_links_tenant_id_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.node_links
    ADD CONSTRAINT node_links_tenant_id_target_id_fkey FOREIGN KEY (tenant_id, target_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.node_ranks
    ADD CONSTRAINT node_ranks_tenant_id_node_id_fkey FOREIGN KEY (tenant_id, node_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

CREATE POLICY analyst_tenants ON contextforge.ann_nodes FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.egress_policies FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.link_marks FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.next_embeddings FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.node_references FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.postings FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.rank_states FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.replaced_settings FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.search_nodes FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.segments FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.tenant_profiles FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

ALTER TABLE contextforge.ann_nodes ENABLE ROW LEVEL SECURITY;

CREATE POLICY api_tenants ON contextforge.ann_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.egress_policies TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.link_marks TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.next_embeddings TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.node_references TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.postings TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.rank_states TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.replaced_settings TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.search_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.segments TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.tenant_profiles TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

ALTER TABLE contextforge.egress_policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.link_marks ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.next_embeddings ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.node_references ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_all ON contextforge.ann_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.egress_policies TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.link_marks TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.next_embeddings TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.node_references TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.postings TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.rank_states TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.replaced_settings TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.search_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.segments TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.tenant_profiles TO contextforge_owner USING (true) WITH CHECK (true);

ALTER TABLE contextforge.postings ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.rank_states ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.replaced_settings ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.search_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.segments ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.tenant_profiles ENABLE ROW LEVEL SECURITY;

CREATE POLICY analyst_tenants ON public.asked_questions FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.egress_calls FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.experiments FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.feedback FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.knowledge_nodes FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.node_links FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.node_ranks FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.recall_audits FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.size_marks FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.traces FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY api_tenants ON public.asked_questions TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.egress_calls TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.experiments TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.feedback TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.knowledge_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.node_links TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.node_ranks TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.recall_audits TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.size_marks TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.traces TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

ALTER TABLE public.asked_questions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.egress_calls ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.experiments ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.feedback ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.knowledge_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.node_links ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.node_ranks ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_all ON public.asked_questions TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.egress_calls TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.experiments TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.feedback TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.knowledge_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.node_links TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.node_ranks TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.recall_audits TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.size_marks TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.traces TO contextforge_owner USING (true) WITH CHECK (true);

ALTER TABLE public.recall_audits ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.size_marks ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.traces ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA contextforge TO contextforge_api;
GRANT USAGE ON SCHEMA contextforge TO contextforge_analyst;
GRANT USAGE ON SCHEMA contextforge TO contextforge_worker;

GRANT USAGE ON SCHEMA contextforge_queue TO contextforge_worker;

GRANT ALL ON SCHEMA public TO contextforge_owner;
GRANT USAGE ON SCHEMA public TO contextforge_api;
GRANT USAGE ON SCHEMA public TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.node_ids TO contextforge_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.knowledge_nodes TO contextforge_api;
GRANT SELECT ON TABLE public.knowledge_nodes TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge_queue.procrastinate_jobs TO contextforge_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.ann_nodes TO contextforge_api;
GRANT SELECT ON TABLE contextforge.ann_nodes TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.doc_ids TO contextforge_api;

GRANT SELECT ON TABLE contextforge.egress_policies TO contextforge_api;
GRANT SELECT ON TABLE contextforge.egress_policies TO contextforge_analyst;

GRANT SELECT ON TABLE contextforge.granted_tenants TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.link_marks TO contextforge_api;
GRANT SELECT ON TABLE contextforge.link_marks TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.next_embeddings TO contextforge_api;
GRANT SELECT ON TABLE contextforge.next_embeddings TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.node_references TO contextforge_api;
GRANT SELECT ON TABLE contextforge.node_references TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.postings TO contextforge_api;
GRANT SELECT ON TABLE contextforge.postings TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.rank_states TO contextforge_api;
GRANT SELECT ON TABLE contextforge.rank_states TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.replaced_settings TO contextforge_api;
GRANT SELECT ON TABLE contextforge.replaced_settings TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.search_nodes TO contextforge_api;
GRANT SELECT ON TABLE contextforge.search_nodes TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.segment_ids TO contextforge_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.segments TO contextforge_api;
GRANT SELECT ON TABLE contextforge.segments TO contextforge_analyst;

GRANT SELECT,UPDATE ON TABLE contextforge.tenant_profiles TO contextforge_api;
GRANT SELECT ON TABLE contextforge.tenant_profiles TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge_queue.procrastinate_events TO contextforge_worker;

GRANT USAGE ON SEQUENCE contextforge_queue.procrastinate_events_id_seq TO contextforge_worker;

GRANT USAGE ON SEQUENCE contextforge_queue.procrastinate_jobs_id_seq TO contextforge_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge_queue.procrastinate_periodic_defers TO contextforge_worker;

GRANT USAGE ON SEQUENCE contextforge_queue.procrastinate_periodic_defers_id_seq TO contextforge_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge_queue.procrastinate_workers TO contextforge_worker;

GRANT USAGE ON SEQUENCE contextforge_queue.procrastinate_workers_id_seq TO contextforge_worker;

GRANT SELECT,INSERT,UPDATE ON TABLE public.asked_questions TO contextforge_api;
GRANT SELECT ON TABLE public.asked_questions TO contextforge_analyst;

GRANT SELECT,INSERT ON TABLE public.egress_calls TO contextforge_api;
GRANT SELECT ON TABLE public.egress_calls TO contextforge_analyst;

GRANT UPDATE(finished_at) ON TABLE public.egress_calls TO contextforge_api;

GRANT UPDATE(outcome) ON TABLE public.egress_calls TO contextforge_api;

GRANT UPDATE(attempts) ON TABLE public.egress_calls TO contextforge_api;

GRANT UPDATE(input_tokens) ON TABLE public.egress_calls TO contextforge_api;

GRANT UPDATE(output_tokens) ON TABLE public.egress_calls TO contextforge_api;

GRANT SELECT,UPDATE ON TABLE public.experiments TO contextforge_api;
GRANT SELECT ON TABLE public.experiments TO contextforge_analyst;

GRANT SELECT,INSERT ON TABLE public.feedback TO contextforge_api;
GRANT SELECT ON TABLE public.feedback TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.node_links TO contextforge_api;
GRANT SELECT ON TABLE public.node_links TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.node_ranks TO contextforge_api;
GRANT SELECT ON TABLE public.node_ranks TO contextforge_analyst;

GRANT SELECT,INSERT ON TABLE public.recall_audits TO contextforge_api;
GRANT SELECT ON TABLE public.recall_audits TO contextforge_analyst;

GRANT SELECT,INSERT ON TABLE public.traces TO contextforge_api;
GRANT SELECT ON TABLE public.traces TO contextforge_analyst;

GRANT SELECT ON TABLE public.shown_feedback TO contextforge_api;
GRANT SELECT ON TABLE public.shown_feedback TO contextforge_analyst;

GRANT SELECT ON TABLE public.size_marks TO contextforge_api;
GRANT SELECT ON TABLE public.size_marks TO contextforge_analyst;
