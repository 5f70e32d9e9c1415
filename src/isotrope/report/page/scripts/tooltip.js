// One small box that says what is under the pointer or the keyboard's cursor.
const tip = document.getElementById("tooltip");

function showTip(x, y, title, lines) {
  tip.replaceChildren(h("strong", {}, title), ...lines.filter(Boolean).map((line) => h("div", { class: line.soft ? "soft" : null }, line.soft || line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), room = document.documentElement.clientWidth;
  const left = x + 14 + box.width > room ? Math.max(8, x - 14 - box.width) : x + 14;
  const top = y + 14 + box.height > innerHeight ? Math.max(8, y - 14 - box.height) : y + 14;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${top + scrollY}px`;
}

const hideTip = () => { tip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("scroll", hideTip, { passive: true });
