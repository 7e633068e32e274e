// Places the nodes of a small graph: linked ones near each other, all others apart.

const ROUNDS = 260;
const REACH = 6; // beyond it nodes do not push: else those without links would fly away
const TWIST = 2.399963; // the golden angle: no two nodes start on one line

/** Return a place { x, y } between 0 and 1 for each node id; the same graph gives the same places. */
export function layOut(nodeIds, links) {
  const points = nodeIds.map((id, place) => ({
    id,
    x: Math.sqrt(place + 1) * Math.cos(place * TWIST),
    y: Math.sqrt(place + 1) * Math.sin(place * TWIST),
  }));
  const byId = new Map(points.map((point) => [point.id, point]));
  const pairs = links.map((link) => [byId.get(link.source_id), byId.get(link.target_id)]).filter(([a, b]) => a && b && a !== b);
  for (let round = 0; round < ROUNDS; round += 1) settle(points, pairs, 0.9 * (1 - round / ROUNDS));
  return fit(points);
}

function settle(points, pairs, heat) {
  const moves = new Map(points.map((point) => [point, { x: 0, y: 0 }]));
  for (const [place, a] of points.entries()) {
    for (const b of points.slice(place + 1)) push(moves, a, b, (distance) => (distance < REACH ? 1.2 / distance : 0));
    moves.get(a).x -= a.x * 0.1;
    moves.get(a).y -= a.y * 0.14;
  }
  for (const [a, b] of pairs) push(moves, a, b, (distance) => -distance * distance * 0.18);
  for (const [point, move] of moves) {
    const length = Math.hypot(move.x, move.y) || 1;
    point.x += (move.x / length) * Math.min(length, heat);
    point.y += (move.y / length) * Math.min(length, heat);
  }
}

function push(moves, a, b, force) {
  const dx = a.x - b.x;
  const dy = a.y - b.y;
  const distance = Math.max(0.05, Math.hypot(dx, dy));
  const strength = force(distance) / distance;
  const [first, second] = [moves.get(a), moves.get(b)];
  first.x += dx * strength;
  first.y += dy * strength;
  second.x -= dx * strength;
  second.y -= dy * strength;
}

function fit(points) {
  const [left, right] = spread(points.map((point) => point.x));
  const [top, bottom] = spread(points.map((point) => point.y));
  const place = (value, low, high) => (high > low ? (value - low) / (high - low) : 0.5);
  return new Map(points.map((point) => [point.id, { x: place(point.x, left, right), y: place(point.y, top, bottom) }]));
}

const spread = (values) => [Math.min(...values), Math.max(...values)];
