// Users and their roles, and one's own password.

import { confirmed, element, labelled, notice, table } from "./elements.js";
import { ask, part } from "./requests.js";

const USERS = "/settings/rbac/users/local";

/** The page. */
export function users(place, { user }) {
  const list = element("div", {});
  const add = element("button", { type: "button", class: "first", onclick: () => form(null, load) },
    "New user");
  place.append(element("h1", {}, "Users"), element("div", { class: "row" }, add), list, own(user));
  const load = async () => {
    try {
      list.replaceChildren(tableOf(await ask("GET", USERS), load));
    } catch (error) {
      list.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  load();
  return () => {};
}

function roleText({ role, bucket_name: bucket, scope_name: scope, collection_name: collection }) {
  const place = [bucket, scope, collection].filter((name) => name && name !== "*");
  if (!bucket) return role;
  return `${role}[${place.length > 0 ? place.join(":") : "*"}]`;
}

/** The roles that a user was given itself, and not by a group. */
function ownRoles(user) {
  const isOwn = (role) => !role.origins || role.origins.some((origin) => origin.type === "user");
  return user.roles.filter(isOwn).map(roleText).join(",");
}

function tableOf(all, load) {
  const columns = [{ title: "User" }, { title: "Name" }, { title: "Roles" }, { title: "Groups" },
    { title: "" }];
  const remove = async (user) => {
    if (!(await confirmed(`Delete the user ${user.id}?`, "Delete it"))) return;
    await ask("DELETE", `${USERS}/${part(user.id)}`).then(() => notice(`${user.id} is deleted`))
      .catch((error) => notice(error.message, true));
    load();
  };
  const button = (text, user, onclick, kind = null) => element("button", { type: "button",
    class: kind, "aria-label": `${text} ${user.id}`, onclick }, text);
  const rows = all.map((user) => [
    element("strong", {}, user.id), user.name || "–",
    user.roles.map(roleText).join(", ") || "none", (user.groups ?? []).join(", ") || "–",
    [button("Change", user, () => form(user, load)),
      button("Delete", user, () => remove(user), "danger")],
  ]);
  return table("Users of the cluster", columns, rows);
}

function form(user, done) {
  const id = element("input", { required: true, value: user?.id ?? "", disabled: user !== null });
  const name = element("input", { value: user?.name ?? "" });
  const password = element("input",
    { type: "password", autocomplete: "new-password", required: user === null });
  const roles = element("input", { value: user ? ownRoles(user) : "", size: 48,
    placeholder: "data_reader[travel],bucket_admin[orders]" });
  const groups = element("input", { value: (user?.groups ?? []).join(",") });
  const known = element("p", { class: "metric" });
  ask("GET", "/settings/rbac/roles").then((all) => {
    const names = all.map((it) => it.role + (it.bucket_name ? "[…]" : ""));
    known.textContent = `Roles: ${names.join(", ")}`;
  }).catch((error) => { known.textContent = error.message; });
  const problem = element("p", { class: "bad", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    const limits = user?.limits ? JSON.stringify(user.limits) : null;
    try {
      await ask("PUT", `${USERS}/${part(id.value)}`, { name: name.value, roles: roles.value,
        groups: groups.value, password: password.value || null, limits });
      dialog.close();
      notice(`${id.value} is ${user ? "changed" : "there"}`);
      done();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const title = user ? `Change ${user.id}` : "New user";
  const dialog = element("dialog", { "aria-label": title, onclose: () => dialog.remove() },
    element("form", { onsubmit: submit },
      element("h2", {}, title),
      element("div", { class: "row" }, labelled("User", id), labelled("Name", name),
        labelled(user ? "New password (empty: as it was)" : "Password", password),
        labelled("Roles, with commas between them", roles), labelled("Groups", groups)),
      known, problem,
      element("button", { class: "first" }, user ? "Change it" : "Make it"), " ",
      element("button", { type: "button", onclick: () => dialog.close() }, "Leave it")));
  document.body.append(dialog);
  dialog.showModal();
}

/** One's own password; the session ends with the old one. */
function own(user) {
  const password = element("input",
    { type: "password", autocomplete: "new-password", required: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "/controller/changePassword", { password: password.value });
      await ask("POST", "/uilogin", { user: user.id, password: password.value });
      password.value = "";
      notice("The new password holds");
    } catch (error) {
      notice(error.message, true);
    }
  };
  return element("section", { class: "card" },
    element("h2", {}, "Your own password"),
    element("form", { class: "row", onsubmit: submit },
      labelled(`New password of ${user.id}`, password), element("button", {}, "Set it")));
}
