create or replace function contextforge.index_text(config regconfig, plain_text text)
returns tsvector
language sql
immutable
parallel safe
return to_tsvector(
    config, concat_ws(' ', plain_text, contextforge.identifier_words(plain_text))
);

comment on function contextforge.index_text(regconfig, text) is
'Lexemes of a text, and of the words inside its identifiers. Nodes and queries take the same way.';

revoke all on function contextforge.index_text(regconfig, text) from public;
grant execute on function contextforge.index_text(regconfig, text)
to contextforge_api, contextforge_analyst;
