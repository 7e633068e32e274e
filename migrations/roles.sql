-- Roles, schema and extension: what must stand before the first revision. Idempotent, run by the
-- administrator's login on every migrate. Roles belong to the whole server: downgrades keep them.
do $$
declare
    role_name text;
begin
    foreach role_name in array array[
        'contextforge_owner', 'contextforge_api', 'contextforge_analyst', 'contextforge_worker'
    ] loop
        begin
            if not exists (select from pg_catalog.pg_roles as r where r.rolname = role_name) then
                execute format('create role %I nologin', role_name);
            end if;
        exception when duplicate_object or unique_violation then
            null; -- another database of this server was migrated at the same moment
        end;
    end loop;
    -- A login that may create roles is not a member of what it creates unless it says so.
    if not pg_catalog.pg_has_role(current_user, 'contextforge_owner', 'set') then
        execute format('grant contextforge_owner to %I with set true, inherit true', current_user);
    end if;
    execute format(
        'grant connect, create on database %I to contextforge_owner', pg_catalog.current_database()
    );
end
$$;

create schema if not exists contextforge authorization contextforge_owner;
grant usage, create on schema public to contextforge_owner;
grant usage on schema public to contextforge_api, contextforge_analyst;
grant usage on schema contextforge
to contextforge_api, contextforge_analyst, contextforge_worker;
