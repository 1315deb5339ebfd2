/** What somebody wrote in Markdown, from the tree that Python made of it: elements of few kinds, with texts in them. */

/** @type {Set<string>} */
const WRITTEN_TAGS = new Set([
  "p", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br", "table", "thead", "tbody", "tr", "th", "td", "a", "h4", "h5", "h6",
]);
/** Where a link may lead; it says nothing of where it came from, and gets no hold of this page. */
const OUTSIDE = /^https?:\/\//i;
const DEEPEST_WRITTEN = 40;

/** @param {Written[]} parts @param {number} [depth] @returns {Child[]} */
const writtenParts = (parts, depth = 0) => parts.map((part) => {
  if (typeof part === "string") return part.length > 1000 ? named(part, 20000) : part;
  const { tag, href, children } = part;
  if (!WRITTEN_TAGS.has(tag) || depth > DEEPEST_WRITTEN) return writtenParts(children, depth + 1);
  if (tag === "pre") return shownText(children.filter((each) => typeof each === "string").join(""));
  const element = h(/** @type {"p"} */ (tag), writtenParts(children, depth + 1));
  if (tag === "table") return h("div.wide", element);
  if (tag === "a" && OUTSIDE.test(href)) {
    for (const [name, value] of entries({ href, rel: "noopener noreferrer nofollow", target: "_blank", title: visible(href) })) {
      element.setAttribute(name, value);
    }
  }
  return element;
});
