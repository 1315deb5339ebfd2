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
    if (report.format !== 1) throw new Error(`Its data are of format ${report.format}, which this page does not know. Write the report again.`);
  } catch (error) {
    heading(main, "This report cannot be shown");
    main.append(note("error", messageOf(error)));
    return;
  }
  name.textContent = visible(report.title || "Report");
  if (report.under_way) header.append(badge("under way", "A session was still writing: reload the page for news", "warning"));
  foot.append(h("p", `Written ${timeOfDay(report.written)} by pytest-evocode ${report.version}. Press `, h("kbd", "?"), " for keys."));
  startKeyboard();
  await startRouter();
}

void start();
