// A table that can be sorted, filtered and turned over page by page; it holds no more rows than one page.
// columns: {title, get(row), number, show(value), class}. rows: any array; filter(row) says the text that is searched.
function sortable({ caption, columns, rows, filter, sort = null, page = 25, name, placeholder, mark, click }) {
  let order = sort, first = 0, query = "", found = rows();
  const body = h("tbody"), count = h("span", { role: "status" });
  const search = filter && h("input", { type: "search", placeholder: placeholder || "Filter", "aria-label": `${caption}: filter`, oninput: (event) => { query = event.target.value.toLowerCase(); first = 0; update(); } });
  const heads = columns.map((column, i) => h("th", { scope: "col", class: column.number ? "number" : null, title: column.hint || null },
    h("button", { type: "button", onclick: () => turn(i) }, column.title)));
  const back = h("button", { type: "button", onclick: () => { first -= page; draw(); } }, "Previous");
  const next = h("button", { type: "button", onclick: () => { first += page; draw(); } }, "Next");

  function turn(i) {
    const same = order && order.column === i;
    order = { column: i, down: same ? !order.down : Boolean(columns[i].number) };
    first = 0;
    update();
  }

  function update() {
    found = rows().filter((row) => !query || filter(row).toLowerCase().includes(query));
    if (order) {
      const { get } = columns[order.column], sign = order.down ? -1 : 1;
      const keyed = found.map((row) => [get(row), row]);
      keyed.sort(([a], [b]) => {
        const none = (a === null || a === undefined || Number.isNaN(a)) - (b === null || b === undefined || Number.isNaN(b));
        return none || sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
      });
      found = keyed.map(([, row]) => row);
    }
    heads.forEach((head, i) => head.setAttribute("aria-sort", order && order.column === i ? (order.down ? "descending" : "ascending") : "none"));
    draw();
  }

  function draw() {
    first = Math.max(0, Math.min(first, Math.floor(Math.max(found.length - 1, 0) / page) * page));
    body.replaceChildren(...found.slice(first, first + page).map((row) => h("tr", { class: mark && mark(row) ? "hit" : null },
      columns.map((column) => {
        const value = column.get(row);
        const words = column.show ? column.show(value, row) : column.number ? shown(value) : visible(String(value ?? ""));
        const kind = [column.number && "number", column.class && (typeof column.class === "function" ? column.class(row) : column.class)].filter(Boolean).join(" ");
        const attributes = { class: kind || null, "data-value": column.number ? exact(value) : null };
        return h("td", attributes, click && column.click ? h("button", { class: "quiet", type: "button", onclick: () => click(row) }, words) : words);
      }))));
    count.textContent = found.length ? `${whole(first + 1)}\u2013${whole(Math.min(first + page, found.length))} of ${whole(found.length)}` : "Nothing matches.";
    back.disabled = first === 0;
    next.disabled = first + page >= found.length;
    back.hidden = next.hidden = found.length <= page;
    count.hidden = found.length > 0 && rows().length <= page;
  }

  const all = () => ({ columns: columns.map((c) => c.title), rows: found.map((row) => columns.map((c) => c.get(row))) });
  const box = h("div", { class: "sortable" },
    filter ? h("div", { class: "controls" }, h("label", { class: "grow" }, h("span", { class: "sr" }, "Filter"), search)) : null,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      h("table", { "aria-label": caption }, h("thead", {}, h("tr", {}, heads)), body)),
    h("div", { class: "pager" }, count, back, next,
      name ? h("button", { class: "quiet", type: "button", "aria-label": `${caption}: download CSV`, onclick: () => saveCsv(name(), all()) }, "CSV") : null));
  update();
  return Object.assign(box, { update });
}
