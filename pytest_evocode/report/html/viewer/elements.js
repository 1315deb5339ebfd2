/** Elements without any way to give HTML: strings become text nodes, and attributes that run or load are refused. */

const SVG_SPACE = "http://www.w3.org/2000/svg";
/** Places in the report (`#/...`) and files of it; nothing with a scheme, so no `javascript:`. */
const SAFE_URL = /^(#\/|[0-9a-z_-]+(\/[0-9a-z_-]+)*\.(csv|json|md)$)/i;
/** Attributes that people read or hear; what is hidden in a text is shown in them too. */
const READ = ["title", "aria-label", "aria-description", "placeholder"];

const { entries } = Object;

/** Make an element: `h("p.quiet", {title: "Why"}, "Because")`. Children that are strings become text nodes, with hidden
 * characters marked; properties, which may be left out, that begin with "on" are listeners; false, null and undefined
 * leave one out, true makes it empty; a class is one more than those of the tag, and a label is heard, not seen. A button submits nothing unless told.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K | `${K}.${string}`} tag @param {Properties | Child} [first] @param {...Child} others
 * @returns {HTMLElementTagNameMap[K]} */
function h(tag, first, ...others) {
  const [name, ...classes] = tag.split(".");
  const element = /** @type {HTMLElementTagNameMap[K]} */ (document.createElement(/** @type {string} */ (name)));
  if (name === "button") element.setAttribute("type", name);
  return filled(element, classes, first, others);
}

/** @template {keyof SVGElementTagNameMap} K
 * @param {K | `${K}.${string}`} tag @param {Properties | Child} [first] @param {...Child} others
 * @returns {SVGElementTagNameMap[K]} */
function svg(tag, first, ...others) {
  const [name, ...classes] = tag.split(".");
  return filled(/** @type {SVGElementTagNameMap[K]} */ (document.createElementNS(SVG_SPACE, /** @type {string} */ (name))), classes, first, others);
}

/** @param {string} href of a place or a file of the report @param {...Child} children */
const anchor = (href, ...children) => h("a", { href }, ...children);

/** Of what only repeats or adorns what is beside it. */
const UNHEARD = { "aria-hidden": "true" };

/** Set geometry by properties of the style object, which a strict policy allows: `style(node, {width: "3px"})`.
 * @template {HTMLElement | SVGElement} T
 * @param {T} element @param {{ [property: string]: string }} values */
function style(element, values) {
  for (const [name, value] of entries(values)) element.style.setProperty(name, value);
  return element;
}

/** @template {HTMLElement | SVGElement} T
 * @param {T} element @param {string[]} classes @param {Properties | Child} first @param {Child[]} others */
function filled(element, classes, first, others) {
  const isChild = typeof first !== "object" || !first || Array.isArray(first) || first instanceof Node;
  // Children first: the value of a select is one of its options.
  appendAll(element, isChild ? [first, ...others] : others);
  const { class: more, ...properties } = isChild ? {} : first;
  if (more) classes.push(String(more));
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of entries(properties)) setProperty(element, name, value);
  return element;
}

/** @param {HTMLElement | SVGElement} element @param {string} name @param {Properties[string]} value */
function setProperty(element, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name === "label") return setProperty(element, "aria-label", value);
  if (name.startsWith("on")) {
    if (typeof value === "function" || typeof value === "object") element.addEventListener(name.slice(2), value);
    return;
  }
  if (name === "style" || name === "src" || name === "srcdoc" || name.startsWith("form")) {
    throw new Error(`The attribute ${name} is not allowed`);
  }
  const text = value === true ? "" : String(value);
  if (name.endsWith("href") || name === "action") {
    if (SAFE_URL.test(text)) element.setAttribute(name, text);
  } else if (name === "value" && "value" in element) element.value = text;
  else element.setAttribute(name, READ.includes(name) ? visible(text) : text);
}

/** @param {Element | DocumentFragment} parent @param {Child[]} children */
function appendAll(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (Array.isArray(child)) appendAll(parent, child);
    else parent.append(child instanceof Node ? child : visible(String(child)));
  }
}

let ids = 0;
/** An id that no other element has. */
const newId = () => `e${++ids}`;
