/** What somebody wrote in Markdown, from the tree that Python made of it: elements of few kinds, with texts in them. */

const WRITTEN_TAGS = /^([aps]|strong|em|code|pre|blockquote|[uo]l|li|[hb]r|t(able|head|body|[rhd])|h[4-6])$/;
/** Where a link may lead; it says nothing of where it came from, and gets no hold of this page. */
const OUTSIDE = /^https?:\/\//i;

/** @param {Written[]} parts @returns {Child[]} */
const writtenParts = (parts) => parts.map((part) => {
  if (typeof part === "string") return named(part, 20000);
  const { tag, href, children } = part;
  const inside = writtenParts(children);
  if (!WRITTEN_TAGS.test(tag)) return inside;
  const element = h(/** @type {"a"} */ (tag), href && { rel: "noreferrer nofollow", title: href }, inside);
  if (OUTSIDE.test(href)) element.href = href;
  return tag === "table" ? h("div.wide", element) : element;
});
