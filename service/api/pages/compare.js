// What changes between the results of A and B.

/** Return the mark of each hit by node id for both sides, and a sentence about them all. */
export function compareHits(before, after) {
  const placesA = places(before);
  const placesB = places(after);
  const marks = { A: new Map(), B: new Map() };
  const counts = { same: 0, moved: 0, added: 0, lost: 0 };
  for (const [node, place] of placesB) {
    const kind = judge(placesA.get(node), place);
    counts[kind.kind] += 1;
    marks.B.set(node, kind);
  }
  for (const node of placesA.keys()) {
    if (placesB.has(node)) continue;
    counts.lost += 1;
    marks.A.set(node, { kind: "lost", text: "lost", label: "not among the results of B" });
  }
  return { marks, summary: describe(counts) };
}

function places(hits) {
  return new Map(hits.map((hit) => [hit.node.node_id, hit.position]));
}

function judge(before, after) {
  if (before === undefined) return { kind: "added", text: "new", label: "not among the results of A" };
  const up = before - after;
  if (up === 0) return { kind: "same", text: "=", label: "same place as in A" };
  const label = `place ${before} in A, ${after} in B`;
  return { kind: "moved", text: up > 0 ? `↑${up}` : `↓${-up}`, label };
}

function describe({ same, moved, added, lost }) {
  if (moved + added + lost === 0) return "A and B agree";
  return `${same} same · ${moved} moved · ${added} new · ${lost} lost`;
}
