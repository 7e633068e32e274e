// The key: asked for where the service wants one, tried before it is used, never stored.

import { get, hasKey, useKey } from "./api.js";
import { find } from "./dom.js";

/** Ask for a key; message says why. `onKey` is called once a key was accepted. */
export function askForKey(message = "") {
  find("key-problem").textContent = message;
  if (!find("key-dialog").open) find("key-dialog").showModal();
  find("key").focus();
}

/** Let the dialog work; a key is tried on `probe`, which the page must be able to read. */
export function connectKeyDialog(onKey, probe = "/v1/nodes?limit=1") {
  find("change-key").addEventListener("click", () => askForKey());
  find("key-cancel").addEventListener("click", () => find("key-dialog").close());
  find("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    tryKey(onKey, probe);
  });
}

/** Show whose data is searched. */
export function showWho(text) {
  find("who").textContent = text;
  find("who").hidden = !text;
}

async function tryKey(onKey, probe) {
  const key = find("key").value.trim();
  const tenant = find("tenant").value.trim();
  useKey(key, tenant);
  try {
    await get(probe);
  } catch (problem) {
    useKey(null);
    find("key-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
    find(problem.code === "invalid_input" ? "tenant" : "key").focus();
    return;
  }
  find("key").value = "";
  find("key-dialog").close();
  showWho(tenant || "Your key");
  onKey();
}

/** Whether a problem is about the key; if so, it is asked for. */
export function handleRefusal(problem) {
  if (problem.status !== 401) return false;
  askForKey(hasKey() ? problem.message : "");
  useKey(null);
  return true;
}
