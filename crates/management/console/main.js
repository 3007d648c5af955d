// The frame around the pages: who is signed in, and which page is shown.

import { buckets } from "./buckets.js";
import { collections } from "./collections.js";
import { documents } from "./documents.js";
import { element, labelled, notice } from "./elements.js";
import { forget, whenStateChanges } from "./figures.js";
import { hotKeys } from "./hot_keys.js";
import { log } from "./log.js";
import { overview } from "./overview.js";
import { ask, whenSignedOut } from "./requests.js";
import { servers } from "./servers.js";
import { setUp } from "./set_up.js";
import { settings } from "./settings.js";
import { slow } from "./slow.js";
import { timings } from "./timings.js";
import { users } from "./users.js";
import { vbuckets } from "./vbuckets.js";

/** All pages, by what stands behind `#/`. Each fills a place, and returns what ends it. */
const PAGES = {
  overview: ["Overview", overview],
  buckets: ["Buckets", buckets],
  collections: ["Collections", collections],
  documents: ["Documents", documents],
  servers: ["Servers", servers],
  vbuckets: ["vBuckets", vbuckets],
  timings: ["Timings", timings],
  slow: ["Slow operations", slow],
  hot: ["Hot keys", hotKeys],
  log: ["Log", log],
  users: ["Users", users],
  settings: ["Settings", settings],
};

const [frame, content] = [document.getElementById("top"), document.getElementById("content")];
let end = null;
let signedIn = null;

function leave() {
  end?.();
  end = null;
  content.replaceChildren();
}

function show(byPerson) {
  if (!signedIn) return;
  leave();
  const name = location.hash.replace(/^#\//, "").split("?")[0];
  const [title, page] = PAGES[name] ?? PAGES.overview;
  document.title = `${title} – Settee`;
  for (const link of document.querySelectorAll("#pages a")) {
    const isThis = link.textContent === title;
    if (isThis) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  end = page(content, { user: signedIn });
  // A screen reader reads the new page and not the link that was followed.
  if (byPerson) content.focus();
}

function signIn() {
  leave();
  forget();
  signedIn = null;
  frame.hidden = true;
  document.title = "Sign in – Settee";
  const user = element("input", { name: "user", autocomplete: "username", required: true });
  const password = element("input",
    { name: "password", type: "password", autocomplete: "current-password", required: true });
  const problem = element("p", { class: "bad", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await ask("POST", "/uilogin", { user: user.value, password: password.value });
      await begin();
    } catch (error) {
      problem.textContent = error.message;
      password.select();
    }
  };
  content.replaceChildren(element("form", { class: "card sign-in", onsubmit: submit },
    element("h1", {}, "Sign in to Settee"),
    labelled("User", user), labelled("Password", password), problem,
    element("button", { class: "first" }, "Sign in")));
  user.focus();
}

async function begin() {
  try {
    const user = await ask("GET", "/whoami");
    const { pools } = await ask("GET", "/pools");
    if (pools.length === 0) return setUp(content, user.id, begin);
    signedIn = user;
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
  document.getElementById("user").textContent = signedIn.id;
  frame.hidden = false;
  show(false);
  return null;
}

document.getElementById("pages").append(...Object.entries(PAGES).map(([name, [title]]) =>
  element("li", {}, element("a", { href: `#/${name}` }, title))));
document.getElementById("sign-out").addEventListener("click", async () => {
  await ask("POST", "/uilogout").catch((error) => notice(error.message, true));
  signIn();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
whenSignedOut(signIn);
whenStateChanges((text) => { document.getElementById("state").textContent = text; });
addEventListener("hashchange", () => show(true));
begin().catch((error) => {
  content.replaceChildren(element("p", { class: "bad" }, error.message));
});
