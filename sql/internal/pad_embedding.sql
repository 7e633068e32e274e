create or replace function contextforge.pad_embedding(embedding vector, dimension integer)
returns vector
language sql
immutable
parallel safe
return case
    when embedding is null then null
    when public.vector_dims(embedding) >= dimension then embedding
    else public.vector_concat(
        embedding,
        array_fill(0::real, array[dimension - public.vector_dims(embedding)])::public.vector
    )
end;

comment on function contextforge.pad_embedding(vector, integer) is
'The embedding with zeros appended up to the dimension; its cosines are unchanged.';

revoke all on function contextforge.pad_embedding(vector, integer) from public;
grant execute on function contextforge.pad_embedding(vector, integer)
to contextforge_api, contextforge_analyst;
