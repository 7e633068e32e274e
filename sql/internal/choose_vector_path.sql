create or replace function contextforge.choose_vector_path(
    tenant_ids text[], kept contextforge.search_filter
)
returns table (path text, candidate_rows bigint)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    setting record;
    corpus bigint;
    indexed boolean;
begin
    select x.exact_limit, x.ann_method into setting from contextforge.search_settings() as x;
    select coalesce(sum(s.documents), 0) into corpus
    from contextforge.segments as s
    where s.tenant_id = any(tenant_ids);
    if corpus <= setting.exact_limit then
        return query select 'exact', corpus;
        return;
    end if;

    -- Counting stops just past the limit: beyond it the exact number decides nothing.
    if not contextforge.is_unfiltered(kept) then
        select count(*) into corpus
        from (
            select
            from contextforge.search_nodes as s
            where s.tenant_id = any(tenant_ids)
                and contextforge.passes_filter(
                    kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang,
                    s.space_id, s.acl
                )
            limit setting.exact_limit + 1
        ) as counted;
        if corpus <= setting.exact_limit then
            return query select 'exact', corpus;
            return;
        end if;
    end if;

    select count(*) <= setting.exact_limit into indexed
    from (
        select
        from contextforge.search_nodes as s
        where s.tenant_id = any(tenant_ids) and not s.in_ann and s.embedding is not null
        limit setting.exact_limit + 1
    ) as tail;
    return query select case when indexed then setting.ann_method else 'exact' end, null::bigint;
end
$$;

comment on function contextforge.choose_vector_path(text[], contextforge.search_filter) is
'exact where the filters leave few rows, or where too many are not in the ANN index yet; '
'otherwise the kind of ANN index. candidate_rows is null where it was not worth counting.';

revoke all on function contextforge.choose_vector_path(text[], contextforge.search_filter)
from public;
grant execute on function contextforge.choose_vector_path(text[], contextforge.search_filter)
to contextforge_api, contextforge_analyst;
