// Light, dark, or as the system has it.
const THEMES = ["auto", "light", "dark"];
const wantsDark = matchMedia("(prefers-color-scheme: dark)");
const themed = [];
let theme = "auto";

const isDark = () => theme === "dark" || (theme === "auto" && wantsDark.matches);

function setTheme(name) {
  theme = name;
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[name];
  button.setAttribute("aria-label", `Colours: ${name}. Change`);
  for (const redraw of themed) redraw();
}

function startTheme() {
  document.getElementById("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]));
  wantsDark.addEventListener("change", () => setTheme(theme));
  let before = null;
  addEventListener("beforeprint", () => { before = theme; setTheme("light"); });
  addEventListener("afterprint", () => { if (before) setTheme(before); });
  setTheme("auto");
}
