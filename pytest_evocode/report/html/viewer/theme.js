/** Light, dark, or what the system has; and what the browser remembers for us, where it does. */

/** @template T
 * @param {string} name @param {T} fallback
 * @returns {T} */
function remembered(name, fallback) {
  try {
    const text = sessionStorage.getItem(`evocode-${name}`) ?? localStorage.getItem(`evocode-${name}`);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** @param {string} name @param {unknown} value @param {boolean} [briefly] for this tab only */
function remember(name, value, briefly = false) {
  try {
    (briefly ? sessionStorage : localStorage).setItem(`evocode-${name}`, JSON.stringify(value));
  } catch {
    // Private windows and full disks: it is only remembered until the page is closed.
  }
}

/** @param {string} theme */
function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function themeSwitch() {
  const theme = String(remembered("theme", "system"));
  setTheme(theme);
  return select({
    label: "Theme", value: theme, choices: [["system", "System"], ["light", "Light"], ["dark", "Dark"]],
    change(value) {
      setTheme(value);
      remember("theme", value);
    },
  });
}
