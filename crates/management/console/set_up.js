// A node that is still to be set up: whoever may says who administers it.

import { element, labelled } from "./elements.js";
import { ask } from "./requests.js";

/** Asks for the administrator, whom the node calls `user` so far; `done` is called then. */
export function setUp(place, user, done) {
  const name = element("input", { value: user, required: true, autocomplete: "username" });
  const word = () => element("input",
    { type: "password", required: true, autocomplete: "new-password" });
  const [password, again, cluster] = [word(), word(), element("input")];
  const problem = element("p", { class: "bad", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    if (password.value !== again.value) {
      problem.textContent = "The two passwords differ; type the same one twice";
      return;
    }
    const login = { user: name.value, password: password.value };
    const clusterName = cluster.value === "" ? null : cluster.value;
    try {
      await ask("POST", "/clusterInit",
        { username: login.user, password: login.password, port: "SAME", clusterName });
      await ask("POST", "/uilogin", login);
      await done();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  document.title = "Set up – Settee";
  place.replaceChildren(element("form", { class: "card sign-in", onsubmit: submit },
    element("h1", {}, "Set this node up"),
    element("p", {}, "It asks nobody for a login yet. The administrator that you name here may do "
      + "everything, and from then on everybody signs in."),
    labelled("Administrator", name), labelled("Password", password),
    labelled("The same password again", again),
    labelled("Name of the cluster, if it is to have one", cluster),
    problem, element("button", { class: "first" }, "Set it up")));
  password.focus();
}
