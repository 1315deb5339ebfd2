/** The shell around all pages. The last script of all: it begins when every page is defined. */

async function start() {
  const main = h("main", { id: "main", tabindex: "-1" });
  const skip = h("a.skip", { href: "#/", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to the page");
  const name = h("a.report-name", { href: "#/" }, "Report");
  const foot = h("footer");
  const header = h("header.top", name, pageLinks(), themeSwitch());
  document.body.replaceChildren(skip, header, main, foot, h("div.hidden", { id: "live", role: "status" }));
  try {
    setIndex(await load("index"));
  } catch (error) {
    heading(main, "This report cannot be shown");
    main.append(note("error", messageOf(error)));
    return;
  }
  const { index } = report;
  if (index.format !== 1) {
    heading(main, "This report cannot be shown");
    main.append(note("error", `Its data are of format ${index.format}, which this page does not know. Write the report again.`));
    return;
  }
  name.textContent = visible(index.title || "Report");
  if (index.under_way) header.append(badge("under way", "A session was still writing when this was made: reload the page for news", "warning"));
  foot.append(h("p", `Written ${timeOfDay(index.written)} by pytest-evocode ${index.version}. Press `, h("kbd", "?"), " for keys."));
  startKeyboard();
  await startRouter();
}

void start();
