// What the page shows: the question, the settings of both sides, and what came back for them.

export const SIDES = ["A", "B"];

/** touched: settings this page has changed; search: the last answer; error: why there is none. */
function newSide() {
  return { touched: {}, search: null, error: null, loading: false };
}

export const state = {
  question: "",
  compare: false,
  editing: "A",
  sides: { A: newSide(), B: newSide() },
  context: { value: null, error: null, loading: false },
  graph: { value: null, error: null },
  milliseconds: null,
};

/** The sides that are searched. */
export const shownSides = () => (state.compare ? SIDES : ["A"]);

/** The side whose settings the answer, the context and the graph follow. */
export const leadingSide = () => state.sides.A;
