CREATE SCHEMA contextforge;

ALTER SCHEMA contextforge OWNER TO contextforge_owner;

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
    ann_search_effort integer DEFAULT 100 NOT NULL,
    prune_from integer DEFAULT 200000 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT installation_ann_method_check CHECK ((ann_method = ANY (ARRAY['hnsw'::text, 'ivfflat'::text]))),
    CONSTRAINT installation_ann_search_effort_check CHECK ((ann_search_effort > 0)),
    CONSTRAINT installation_embedding_dim_check CHECK (((embedding_dim >= 1) AND (embedding_dim <= 2000))),
    CONSTRAINT installation_exact_limit_check CHECK ((exact_limit >= 0)),
    CONSTRAINT installation_only_row_check CHECK (only_row),
    CONSTRAINT installation_prune_from_check CHECK ((prune_from >= 0))
);

ALTER TABLE contextforge.installation OWNER TO contextforge_owner;

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

ALTER TABLE ONLY contextforge.analyst_grants
    ADD CONSTRAINT analyst_grants_pkey PRIMARY KEY (role_name, tenant_id);

ALTER TABLE ONLY contextforge.ann_nodes
    ADD CONSTRAINT ann_nodes_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY contextforge.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);

ALTER TABLE ONLY contextforge.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);

ALTER TABLE ONLY contextforge.embedder_profiles
    ADD CONSTRAINT embedder_profiles_pkey PRIMARY KEY (embedder_version);

ALTER TABLE ONLY contextforge.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY contextforge.next_embeddings
    ADD CONSTRAINT next_embeddings_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY contextforge.node_references
    ADD CONSTRAINT node_references_pkey PRIMARY KEY (tenant_id, source_id, kind, target);

ALTER TABLE ONLY contextforge.postings
    ADD CONSTRAINT postings_pkey PRIMARY KEY (tenant_id, lexeme, segment_id);

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

ALTER TABLE ONLY public.knowledge_nodes
    ADD CONSTRAINT knowledge_nodes_pkey PRIMARY KEY (tenant_id, node_id);

ALTER TABLE ONLY public.knowledge_nodes
    ADD CONSTRAINT knowledge_nodes_tenant_id_dataset_name_external_id_key UNIQUE (tenant_id, dataset_name, external_id);

ALTER TABLE ONLY public.node_links
    ADD CONSTRAINT node_links_pkey PRIMARY KEY (tenant_id, source_id, target_id, link_type);

ALTER TABLE ONLY public.node_ranks
    ADD CONSTRAINT node_ranks_pkey PRIMARY KEY (tenant_id, node_id);

CREATE INDEX idx_knowledge_nodes_embedding ON contextforge.ann_nodes USING hnsw (embedding public.halfvec_cosine_ops);

CREATE INDEX idx_postings_segment ON contextforge.postings USING btree (segment_id);

CREATE INDEX idx_search_nodes_ann_tail ON contextforge.search_nodes USING btree (tenant_id, node_id) WHERE ((NOT in_ann) AND (embedding IS NOT NULL));

CREATE INDEX idx_search_nodes_dataset ON contextforge.search_nodes USING btree (dataset_name, tenant_id);

CREATE INDEX idx_search_nodes_doc ON contextforge.search_nodes USING btree (doc_id);

CREATE INDEX idx_knowledge_nodes_dataset ON public.knowledge_nodes USING btree (tenant_id, dataset_name, node_id);

CREATE INDEX idx_knowledge_nodes_searchable ON public.knowledge_nodes USING gin (searchable_text);

CREATE INDEX idx_knowledge_nodes_tenant ON public.knowledge_nodes USING btree (tenant_id, parent_id, order_index);

CREATE INDEX idx_knowledge_nodes_title ON public.knowledge_nodes USING btree (tenant_id, lower(title)) WHERE (parent_id IS NULL);

CREATE INDEX idx_knowledge_nodes_type ON public.knowledge_nodes USING btree (tenant_id, node_type, node_id);

CREATE INDEX idx_knowledge_nodes_url ON public.knowledge_nodes USING btree (tenant_id, url) WHERE (url IS NOT NULL);

CREATE INDEX idx_node_links_target ON public.node_links USING btree (tenant_id, target_id);

ALTER TABLE ONLY contextforge.analyst_grants
    ADD CONSTRAINT analyst_grants_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES contextforge.tenants(tenant_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.next_embeddings
    ADD CONSTRAINT next_embeddings_tenant_id_node_id_fkey FOREIGN KEY (tenant_id, node_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

ALTER TABLE ONLY contextforge.node_references
    ADD CONSTRAINT node_references_tenant_id_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES public.knowledge_nodes(tenant_id, node_id) ON DELETE CASCADE;

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

CREATE POLICY analyst_tenants ON contextforge.next_embeddings FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.node_references FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.postings FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.search_nodes FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.segments FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON contextforge.tenant_profiles FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

ALTER TABLE contextforge.ann_nodes ENABLE ROW LEVEL SECURITY;

CREATE POLICY api_tenants ON contextforge.ann_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.next_embeddings TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.node_references TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.postings TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.search_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.segments TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON contextforge.tenant_profiles TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

ALTER TABLE contextforge.next_embeddings ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.node_references ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_all ON contextforge.ann_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.next_embeddings TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.node_references TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.postings TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.search_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.segments TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON contextforge.tenant_profiles TO contextforge_owner USING (true) WITH CHECK (true);

ALTER TABLE contextforge.postings ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.search_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.segments ENABLE ROW LEVEL SECURITY;

ALTER TABLE contextforge.tenant_profiles ENABLE ROW LEVEL SECURITY;

CREATE POLICY analyst_tenants ON public.knowledge_nodes FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.node_links FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY analyst_tenants ON public.node_ranks FOR SELECT TO contextforge_analyst USING ((tenant_id = ANY (ARRAY( SELECT g.tenant_id
   FROM contextforge.granted_tenants g))));

CREATE POLICY api_tenants ON public.knowledge_nodes TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.node_links TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

CREATE POLICY api_tenants ON public.node_ranks TO contextforge_api USING ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[]))) WITH CHECK ((tenant_id = ANY (( SELECT string_to_array(NULLIF(current_setting('app.tenant_ids'::text, true), ''::text), ','::text) AS string_to_array)::text[])));

ALTER TABLE public.knowledge_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.node_links ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.node_ranks ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_all ON public.knowledge_nodes TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.node_links TO contextforge_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON public.node_ranks TO contextforge_owner USING (true) WITH CHECK (true);

GRANT USAGE ON SCHEMA contextforge TO contextforge_api;
GRANT USAGE ON SCHEMA contextforge TO contextforge_analyst;

GRANT ALL ON SCHEMA public TO contextforge_owner;
GRANT USAGE ON SCHEMA public TO contextforge_api;
GRANT USAGE ON SCHEMA public TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.node_ids TO contextforge_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.knowledge_nodes TO contextforge_api;
GRANT SELECT ON TABLE public.knowledge_nodes TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.ann_nodes TO contextforge_api;
GRANT SELECT ON TABLE contextforge.ann_nodes TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.doc_ids TO contextforge_api;

GRANT SELECT ON TABLE contextforge.granted_tenants TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.next_embeddings TO contextforge_api;
GRANT SELECT ON TABLE contextforge.next_embeddings TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.node_references TO contextforge_api;
GRANT SELECT ON TABLE contextforge.node_references TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.postings TO contextforge_api;
GRANT SELECT ON TABLE contextforge.postings TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.search_nodes TO contextforge_api;
GRANT SELECT ON TABLE contextforge.search_nodes TO contextforge_analyst;

GRANT USAGE ON SEQUENCE contextforge.segment_ids TO contextforge_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE contextforge.segments TO contextforge_api;
GRANT SELECT ON TABLE contextforge.segments TO contextforge_analyst;

GRANT SELECT,UPDATE ON TABLE contextforge.tenant_profiles TO contextforge_api;
GRANT SELECT ON TABLE contextforge.tenant_profiles TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.node_links TO contextforge_api;
GRANT SELECT ON TABLE public.node_links TO contextforge_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.node_ranks TO contextforge_api;
GRANT SELECT ON TABLE public.node_ranks TO contextforge_analyst;
