"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("theme") || ""; } catch { return ""; } };
  const use = (theme) => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    button.textContent = "Theme: " + (theme || "system");
    try { localStorage.setItem("theme", theme); } catch { /* a page from a file may not be allowed to */ }
  };
  let theme = stored();
  if (!themes.includes(theme)) theme = "";
  use(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    use(theme);
  });

  for (const input of document.querySelectorAll("input.filter")) {
    const rows = input.closest(".box").querySelector("tbody").rows;
    input.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }

  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.classList.contains("none")) return null;
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (head) => {
    const body = head.closest("table").tBodies[0];
    const first = "n" in head.dataset ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    const sign = order === "ascending" ? 1 : -1;
    for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const rows = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : sign * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll(".scroll table")) {
    const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    for (const row of table.tBodies[0].rows) for (const cell of row.cells) cell.dataset.name = names[cell.cellIndex];
    table.classList.add("stacked");
  }
  for (const head of document.querySelectorAll("thead th")) {
    const inside = document.createElement("button");
    inside.type = "button";
    inside.textContent = head.textContent;
    head.replaceChildren(inside);
    inside.addEventListener("click", () => sort(head));
  }
})();
