/** Places as hashes, such as `#/round/ID/3?tab=output`: pages, history, focus, and where one had scrolled to. */

/** @type {Map<string, Page>} */
const pages = new Map();
/** What is shown. */
const shown = {
  place: /** @type {Place} */ ({ page: "", path: [], settings: {} }),
  page: /** @type {Page | null} */ (null),
  live: /** @type {LivePage} */ ({}),
  leave: new AbortController(),
  /** The history entry, for scroll positions. */
  entry: "",
  /** Whether the next heading gets the focus, as a browser does it with a new document. */
  focus: false,
};
/** How far one had scrolled in each history entry. @type {Map<string, number>} */
const scrolled = new Map();
const HOME = "overview";

/** @param {string} name @param {string} title in the navigation, or "" for a page that is reached by links only @param {Page["show"]} show */
function definePage(name, title, show) {
  pages.set(name, { name, title, show });
}

/** @param {string} page @param {(string | number)[]} [path] @param {{ [name: string]: string | number | null | undefined }} [settings] */
function link(page, path = [], settings = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of entries(settings)) if (value !== null && value !== undefined) query.set(name, String(value));
  const where = [page, ...path].map((part) => encodeURIComponent(String(part).replace(/\p{Cs}/gu, "\ufffd"))).join("/");
  return `#/${where}${query.size ? `?${query}` : ""}`;
}

/** The page that is shown with some other settings. @param {{ [name: string]: string | number | null | undefined }} settings */
const here = (settings) => link(shown.place.page, shown.place.path, { ...shown.place.settings, ...settings });

/** @param {string} hash @returns {Place} */
function placeOf(hash) {
  const [where = "", ...query] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...path] = where.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const settings = Object.assign(Object.create(null), Object.fromEntries(new URLSearchParams(query.join("?"))));
  return { page: page || HOME, path, settings };
}

/** Change settings of the current place; a step of the history unless `replace`. The page is not shown anew: its
 * `update` is called if it has one, else it is shown anew. With `quiet`, what called has shown the change itself.
 * @param {{ [name: string]: string | number | null }} settings @param {{ replace?: boolean, quiet?: boolean }} [options] */
function setSettings(settings, { replace = false, quiet = false } = {}) {
  const url = here(settings);
  if (url === here({})) return;
  keepScroll();
  if (!replace) shown.entry = newEntry();
  history[replace ? "replaceState" : "pushState"]({ entry: shown.entry }, "", url);
  keepPlace(placeOf(url));
  if (!quiet) void update();
}

/** Other settings of the same page: those who hold the place they were shown with see them, too. @param {Place} now */
function keepPlace({ settings }) {
  const held = shown.place.settings;
  for (const name of Object.keys(held)) delete held[name];
  Object.assign(held, settings);
}

/** @param {string} url of a place, as `link` gives it */
function go(url) {
  if (url.startsWith("#/")) location.hash = url;
}

const newEntry = () => `${Date.now().toString(36)}-${newId()}`;
const keepScroll = () => scrolled.set(shown.entry, window.scrollY);

/** The title in the page, the document's title and the trail of links above.
 * @param {HTMLElement} main @param {string} title @param {[string, string][]} [trail] titles and links */
function heading(main, title, trail = []) {
  const top = h("h1", { tabindex: "-1" }, title);
  main.prepend(h("div", trail.length > 0 && h("nav.trail", { label: "Above this page" },
      h("ol", trail.map(([text, href]) => h("li", anchor(href, text))))), top));
  // What is above comes after: of many rounds in as many tabs one sees whose each is, and where it was played.
  const names = [title, ...trail.map(([text]) => text).slice(1).reverse(), report.title || "Report"];
  document.title = visible([...new Set(names)].join(" · "));
  if (!shown.focus) return;
  shown.focus = false;
  focusStill(top);
}

/** Show where the address says. */
async function navigate() {
  // The page has not moved yet, so this is how far it was scrolled in the place before.
  if (shown.entry) keepScroll();
  const known = history.state?.entry;
  shown.entry = known ?? newEntry();
  if (!known) history.replaceState({ entry: shown.entry }, "");
  const before = shown.place;
  const now = placeOf(location.hash);
  const first = shown.page === null;
  if (!first && now.page === before.page && now.path.join("/") === before.path.join("/")) {
    keepPlace(now);
    return update();
  }
  shown.place = now;
  shown.focus = !first;
  await show(known ? (scrolled.get(shown.entry) ?? 0) : 0);
}

async function update() {
  markNavigation();
  if (shown.live.update) return shown.live.update(shown.place);
  const focus = focusKey();
  await show(window.scrollY);
  refocus(focus);
}

/** @param {number} scroll how far to scroll when the page is there */
async function show(scroll) {
  shown.leave.abort();
  const leave = (shown.leave = new AbortController());
  const { place } = shown;
  const page = pages.get(place.page) ?? NO_PAGE;
  shown.page = page;
  const holder = h(`div.page.page-${page.name}`, { "aria-busy": "true" });
  document.getElementById("main")?.replaceChildren(holder);
  markNavigation();
  if (!scroll) window.scrollTo(0, 0);
  try {
    shown.live = {};
    const live = await page.show(holder, place, leave.signal);
    if (!leave.signal.aborted) shown.live = live ?? {};
  } catch (error) {
    if (leave.signal.aborted) return;
    if (!holder.querySelector("h1")) heading(holder, page.title || "Not shown");
    holder.append(note("error", messageOf(error)));
    console.warn(error);
  }
  if (leave.signal.aborted) return;
  holder.removeAttribute("aria-busy");
  if (scroll) restoreScroll(scroll, leave.signal);
}

/** Lists that draw what is seen get their height in steps, so this takes some tries.
 * @param {number} scroll @param {AbortSignal} left */
function restoreScroll(scroll, left) {
  let tries = 0;
  const attempt = () => {
    if (left.aborted) return;
    window.scrollTo(0, scroll);
    if (Math.abs(window.scrollY - scroll) > 2 && ++tries < 10) requestAnimationFrame(attempt);
  };
  attempt();
}

/** What has the focus, described such that it is found again after the page was shown anew. */
function focusKey() {
  const main = document.getElementById("main");
  const element = document.activeElement;
  if (!main || !element || element === main || !main.contains(element)) return null;
  const key = keyOf(element);
  return { key, place: [...main.querySelectorAll(element.tagName)].filter((each) => keyOf(each) === key).indexOf(element), element };
}

/** @param {Element} element */
function keyOf(element) {
  const label = element.getAttribute("aria-label") ?? element.closest("label")?.firstElementChild?.textContent ?? element.textContent;
  return `${element.tagName} ${element.getAttribute("role") ?? ""} ${label?.slice(0, 60)}`;
}

/** @param {ReturnType<typeof focusKey>} focus */
function refocus(focus) {
  if (!focus || focus.element.isConnected) return;
  const main = /** @type {HTMLElement} */ (document.getElementById("main"));
  const same = [...main.querySelectorAll(focus.element.tagName)].filter((each) => keyOf(each) === focus.key);
  const element = same[focus.place] ?? same[0];
  if (element instanceof HTMLElement) focusStill(element);
}

/** @type {Page} */
const NO_PAGE = {
  name: "none", title: "",
  show(main, place) {
    heading(main, "There is no such page");
    main.append(h("p", "This report has no page “", named(place.page), "”. Choose one of those above."));
  },
};

/** The links to pages. */
function pageLinks() {
  const titled = [...pages.values()].filter((page) => page.title);
  // Scripts are joined by name; people look for the overview first.
  titled.sort((one, other) => Number(other.name === HOME) - Number(one.name === HOME));
  return h("nav.pages", { label: "Pages" },
    h("ul", titled.map((page) => h("li", h("a", { href: link(page.name), "data-page": page.name }, page.title)))));
}

function markNavigation() {
  for (const each of document.querySelectorAll("[data-page]")) {
    if (each.getAttribute("data-page") === shown.place.page) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

function startRouter() {
  history.scrollRestoration = "manual";
  for (const [entry, scroll] of entries(remembered("scrolled", {}))) scrolled.set(entry, Number(scroll));
  window.addEventListener("pagehide", () => {
    keepScroll();
    remember("scrolled", Object.fromEntries([...scrolled].slice(-100)), true);
  });
  window.addEventListener("popstate", () => void navigate());
  return navigate();
}
