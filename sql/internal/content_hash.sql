create or replace function contextforge.content_hash(
    title text, summary text, header text, content text, lang text, searchable boolean
)
returns bytea
language sql
immutable
parallel safe
return sha256(convert_to(
    jsonb_build_array(title, summary, header, content, lang, coalesce(searchable, true))::text,
    'utf8'
));

comment on function contextforge.content_hash(text, text, text, text, text, boolean) is
'What a node''s lexemes and embedding depend on, as one value: the same hash, the same text.';

revoke all on function contextforge.content_hash(text, text, text, text, text, boolean)
from public;
grant execute on function contextforge.content_hash(text, text, text, text, text, boolean)
to contextforge_api;
