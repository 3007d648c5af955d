// Requests to the node. Each says that the console asks: a page of another site cannot.

const HEADERS = { "ns-server-ui": "yes" };

/** Why the node has not done what it was asked. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Who is to hear that nobody is signed in any more. */
let onSignedOut = () => {};
export function whenSignedOut(act) {
  onSignedOut = act;
}

/** A request with a form, if there are fields. Resolves to the JSON of the answer, or its text. */
export async function ask(method, path, fields) {
  const body = fields && new URLSearchParams(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
  return answered(await send(path, { method, headers: HEADERS, body }), path);
}

/** A POST of JSON. */
export async function askJson(path, value) {
  const headers = { ...HEADERS, "content-type": "application/json" };
  return answered(await send(path, { method: "POST", headers, body: JSON.stringify(value) }), path);
}

/** The lines `data:` of a stream of events, until `signal` ends it. */
export async function* events(path, signal) {
  const answer = await send(path, { headers: HEADERS, signal });
  if (!answer.ok) await answered(answer, path);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    unread += value;
    for (let end = unread.indexOf("\n\n"); end >= 0; end = unread.indexOf("\n\n")) {
      const event = unread.slice(0, end);
      unread = unread.slice(end + 2);
      if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  }
}

/** A part of a path. */
export const part = encodeURIComponent;

async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The node does not answer; it may be stopped, or the network is");
  }
}

async function answered(answer, path) {
  const text = await answer.text();
  let value = text;
  try {
    value = text === "" ? null : JSON.parse(text);
  } catch {
    // Not all answers are JSON.
  }
  if (answer.ok) return value;
  if (answer.status === 401 && path !== "/uilogin") onSignedOut();
  throw new Refusal(answer.status, reason(answer.status, value));
}

/** What the node says of why not, in one line. */
function reason(status, value) {
  if (value?.permissions) return `This needs the permission ${value.permissions.join(", ")}`;
  const errors = value?.errors ?? value;
  if (errors && typeof errors === "object" && !Array.isArray(errors)) {
    const said = Object.entries(errors).filter(([, text]) => typeof text === "string");
    const line = ([field, text]) => (field === "_" ? text : `${field}: ${text}`);
    if (said.length > 0) return said.map(line).join("; ");
  }
  if (Array.isArray(errors) && errors.length > 0) return errors.join("; ");
  if (typeof errors === "string" && errors !== "") return errors.trim();
  if (status === 401) return "The user or the password is wrong";
  return `The node has answered with status ${status}`;
}
