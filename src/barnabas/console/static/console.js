// Keeps a page up to date and adds keys. Without it, every page still works: reload it, and use its links.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const state = document.getElementById("live-state");
let source = null;
let asking = false;
let again = false;

function say(text, kind) {
  if (state) {
    state.textContent = text;
    state.dataset.kind = kind;
  }
}

// Good only if the cluster answers too.
function sayLive(text) {
  say(text, live.querySelector(":scope > .box.error[role=alert]") === null ? "good" : "bad");
}

// --- live updates: an event says that there is a new answer, and the page asks for its own content again

function isBusy() {
  const focused = document.activeElement;
  return live.contains(focused) && ["INPUT", "SELECT", "TEXTAREA"].includes(focused.tagName);
}

async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  if (isBusy() || !getSelection().isCollapsed) {
    later();
    return;
  }
  asking = true;
  try {
    const response = await fetch(location.href, { headers: { "x-console-live": "1" }, redirect: "manual" });
    if (response.status === 401 || response.type === "opaqueredirect") {
      location.reload();
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("live");
    if (fresh === null) {
      outdated(page);
    } else if (!isBusy()) {
      const opened = new Set([...live.querySelectorAll("details[open][id]")].map((each) => each.id));
      const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      live.replaceChildren(...fresh.childNodes);
      live.dataset.shown = fresh.dataset.shown;
      for (const each of live.querySelectorAll("details[id]")) {
        if (opened.has(each.id)) {
          each.open = true;
        }
      }
      if (focused !== null) {
        const same = [...live.querySelectorAll("a[href]")].find((each) => each.getAttribute("href") === focused);
        if (same) {
          same.focus({ preventScroll: true });
        }
      }
      const at = page.getElementById("asked-at");
      const shown = document.getElementById("asked-at");
      if (at !== null && shown !== null) {
        shown.replaceWith(at);
      }
      shownTimes();
      labelled();
      more();
      if (source !== null && source.readyState === EventSource.OPEN) {
        sayLive("live");
      }
      follow(fresh.dataset.keys);
    }
  } catch {
    say("console not reachable", "bad");
  } finally {
    asking = false;
    askAgain();
    if (again) {
      again = false;
      setTimeout(refresh, 200);
    }
  }
}

// What the page is about is gone, as a broker that was unregistered: what is shown stays, with the reason.
function outdated(page) {
  const problem = page.querySelector("main .box");
  if (problem !== null && live.querySelector("[data-outdated]") === null) {
    problem.dataset.outdated = "";
    live.prepend(problem);
  }
}

function follow(keys) {
  if (keys === live.dataset.keys && (source !== null || beginning || waiting !== 0)) {
    return;
  }
  live.dataset.keys = keys;
  unlisten();
  start();
}

// A browser opens six connections to one address. If each window in sight kept one, the next would not even load:
// four have a stream, and the others ask every few seconds.
const STREAMS = 4;
const EVERY_MS = 5000;
let place = null; // gives the place of this window's stream back
let beginning = false;
let waiting = 0;

function freePlace() {
  if (!navigator.locks) {
    return Promise.resolve(() => {});
  }
  return new Promise((found) => {
    const attempt = (number) => {
      if (number === STREAMS) {
        found(null);
        return;
      }
      navigator.locks.request("stream-" + number, { ifAvailable: true }, (lock) => {
        if (lock === null) {
          attempt(number + 1);
          return null;
        }
        return new Promise((done) => found(done));
      }).catch(() => found(null));
    };
    attempt(0);
  });
}

async function start() {
  if (source !== null || beginning || !live.dataset.keys || document.hidden) {
    return;
  }
  beginning = true;
  place = place || await freePlace();
  beginning = false;
  if (document.hidden) {
    stop();
  } else if (place !== null) {
    listen();
  } else {
    sayLive("live, every " + EVERY_MS / 1000 + " s");
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      waiting = 0;
      await refresh();
      start();
    }, EVERY_MS);
  }
}

function listen() {
  source = new EventSource(live.dataset.events + "?keys=" + encodeURIComponent(live.dataset.keys) + "&shown=" + live.dataset.shown);
  source.onopen = () => sayLive("live");
  source.onmessage = refresh;
  source.onerror = () => {
    say("connecting", "bad");
    // A refusal, as after a restart of the console, ends a stream for good. The page itself says what to do.
    if (source.readyState === EventSource.CLOSED) {
      unlisten();
      setTimeout(reconnect, 3000);
    }
  };
  source.addEventListener("gone", () => {
    unlisten();
    refresh();
  });
}

async function reconnect() {
  await refresh();
  if (source === null && !document.hidden) {
    setTimeout(reconnect, 3000);
  }
}

function unlisten() {
  clearTimeout(waiting);
  waiting = 0;
  if (source !== null) {
    source.close();
    source = null;
  }
}

function stop() {
  unlisten();
  if (place !== null) {
    place();
    place = null;
  }
}

let soon = 0;
function later() {
  clearTimeout(soon);
  if (!document.hidden) {
    soon = setTimeout(refresh, 2000);
  }
}

// Progress is not an answer: no event tells of it.
function askAgain() {
  clearTimeout(soon);
  if (live.querySelector("[data-again]") !== null) {
    later();
  }
}

if (live !== null) {
  start();
  askAgain();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stop();
      say("paused", "");
    } else {
      start();
      refresh();
    }
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      start();
      refresh();
    }
  });
}

// --- times: the server writes UTC; a hint shows the time of this machine

function shownTimes() {
  for (const each of document.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(each.getAttribute("datetime"));
    if (!Number.isNaN(at.getTime())) {
      each.title = at.toLocaleString();
    }
  }
}
shownTimes();

// --- narrow screens: cells of cards have the names of their columns, and stay cells for those who cannot see them

function labelled() {
  for (const table of document.querySelectorAll("table.cards")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
    table.setAttribute("role", "table");
    table.dataset.labelled = "";
    for (const group of table.querySelectorAll("thead, tbody")) {
      group.setAttribute("role", "rowgroup");
    }
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, at) => {
        const isHead = cell.tagName === "TH";
        cell.setAttribute("role", !isHead ? "cell" : cell.scope === "col" ? "columnheader" : "rowheader");
        if (row.parentElement.tagName === "TBODY" && cell.colSpan === 1 && names[at]) {
          cell.dataset.label = names[at];
        }
      });
    }
  }
}
labelled();

// --- wide tables: a shadow at the right says that there are more columns

function more() {
  for (const each of document.querySelectorAll(".table")) {
    each.toggleAttribute("data-more", each.scrollWidth - each.clientWidth - each.scrollLeft > 1);
  }
}
more();
addEventListener("resize", more);
document.addEventListener("scroll", (event) => {
  if (event.target.matches && event.target.matches(".table")) {
    more();
  }
}, true);

// --- theme

const themes = ["", "light", "dark"];
const toggle = document.getElementById("theme");
if (toggle !== null) {
  const names = { "": "auto", light: "light", dark: "dark" };
  const show = () => {
    toggle.textContent = "Theme: " + names[document.documentElement.dataset.theme];
  };
  toggle.hidden = false;
  show();
  toggle.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    document.documentElement.dataset.theme = next;
    document.cookie = "theme=" + next + "; path=/; max-age=31536000; samesite=lax";
    show();
  });
}

// --- copying of commands

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button !== null) {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
  }
});

// --- back to a form as it was filled in

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-back]");
  if (link !== null && link.href === document.referrer) {
    event.preventDefault();
    history.back();
  }
});

// --- filters apply at once

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) {
    event.target.form.requestSubmit();
  }
});

// --- keys: / searches, g and a letter goes to a page, ? shows them

let went = 0;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) {
    return;
  }
  if (event.key === "Escape" && typing) {
    typing.blur();
  } else if (event.key === "/") {
    const search = main && main.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === "?") {
    showKeys();
  } else if (Date.now() - went < 1500) {
    went = 0;
    const link = document.querySelector('nav a[data-key="' + CSS.escape(event.key) + '"]');
    if (link !== null) {
      link.click();
    }
  } else if (event.key === "g") {
    went = Date.now();
  }
});

function showKeys() {
  const help = document.getElementById("keys");
  if (help !== null && !help.open) {
    help.showModal();
  }
}
const keysButton = document.getElementById("show-keys");
if (keysButton !== null) {
  keysButton.hidden = false;
  keysButton.addEventListener("click", showKeys);
}

// --- the state of long lists

const search = document.querySelector("input[type=search][autofocus]");
if (search !== null) {
  search.setSelectionRange(search.value.length, search.value.length);
}

// --- search of records: rows come as they are found; closing the stream cancels

const searching = document.querySelector("form[data-search]");
if (searching !== null) {
  const results = document.getElementById("search-results");
  const told = document.getElementById("search-state");
  const bar = document.getElementById("search-progress");
  const cancel = document.getElementById("cancel-search");
  let stream = null;
  const end = (text) => {
    if (stream !== null) {
      stream.close();
      stream = null;
    }
    cancel.hidden = true;
    bar.hidden = true;
    told.textContent = text;
  };
  let last = "";
  cancel.addEventListener("click", () => end(last + " Cancelled."));
  addEventListener("pagehide", () => end(""));
  searching.addEventListener("submit", (event) => {
    event.preventDefault();
    end("Searching");
    results.querySelector("tbody").replaceChildren();
    results.hidden = true;
    const given = new URLSearchParams([...new FormData(searching)].filter((pair) => pair[1] !== ""));
    // The search has an address too, that can be sent to somebody else.
    const address = new URL(location.href);
    for (const name of [...address.searchParams.keys()].filter((each) => each.startsWith("find_"))) {
      address.searchParams.delete(name);
    }
    for (const [name, value] of given) {
      if (name !== "form") {
        address.searchParams.set("find_" + name, value);
      }
    }
    history.replaceState(null, "", address);
    stream = new EventSource(searching.dataset.search + "?" + given);
    cancel.hidden = false;
    bar.hidden = false;
    stream.addEventListener("step", (message) => {
      const step = JSON.parse(message.data);
      if (step.problem) {
        end(step.problem);
        return;
      }
      if (step.html !== "") {
        const part = document.createElement("template");
        part.innerHTML = step.html;
        results.querySelector("tbody").append(part.content);
        labelled();
        results.hidden = false;
        more();
      }
      const found = results.querySelectorAll("tbody tr").length;
      last = found.toLocaleString("en") + " found; " + step.scanned.toLocaleString("en") + " of " + step.total.toLocaleString("en") + " offsets read.";
      told.textContent = last;
      bar.value = step.total ? step.scanned / step.total : 1;
      if (step.reason) {
        end(last + " The search ended: " + step.reason + ".");
      }
    });
    stream.onerror = () => end(last + " The search was refused or interrupted.");
  });
  if ("begin" in searching.dataset) {
    searching.requestSubmit();
  }
}
