create or replace function contextforge.fold_title(title text)
returns text
language sql
immutable
parallel safe
-- Upper case first, as both of a pair such as final and medial sigma have only one; what German
-- writes as ss in upper case, not every collation provider does.
return replace(lower(upper(normalize(title, nfkc))), 'ß', 'ss');

comment on function contextforge.fold_title(text) is
'A title without what readers take for the same: upper and lower case, and the ways to encode one '
'character. The same function is applied to what a document refers to.';

revoke all on function contextforge.fold_title(text) from public;
grant execute on function contextforge.fold_title(text) to contextforge_api;
