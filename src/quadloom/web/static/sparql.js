// YASGUI in place of the plain form, with completions from this warehouse's own terms instead of other servers'.
"use strict";
(() => {
  const place = document.getElementById("yasgui");
  const plain = document.getElementById("plain");
  if (!window.Yasgui) return;
  const { Yasgui } = window;
  const Yasqe = window.Yasqe || Yasgui.Yasqe;

  function complete(kind) {
    return async (_yasqe, token) => {
      const start = (token && (token.autocompletionString || token.string)) || "";
      const answer = await fetch(`/sparql/words.json?kind=${kind}&start=${encodeURIComponent(start.replace(/[<>]/g, ""))}`);
      return answer.ok ? (await answer.json()).words.map((word) => word.iri) : [];
    };
  }

  for (const [name, kind] of [["class", "class"], ["property", "property"]]) {
    const completer = Yasqe && Yasqe.Autocompleters && Yasqe.Autocompleters[name];
    if (completer) completer.get = complete(kind);
  }

  // The server's errors are JSON for programs; people see the message and the hint.
  async function renderError(error) {
    let body;
    try {
      body = JSON.parse(error.text);
    } catch {
      return undefined;
    }
    if (!body || !body.error) return undefined;
    const shown = document.createElement("div");
    shown.setAttribute("role", "alert");
    const what = document.createElement("strong");
    what.textContent = body.error;
    const hint = document.createElement(body.line ? "pre" : "p");
    hint.textContent = body.hint || "";
    shown.append(what, hint);
    return shown;
  }
  Yasgui.Yasr.defaults.errorRenderers = [renderError];

  const prefixes = JSON.parse(place.dataset.prefixes);
  const query = document.getElementById("query").value;
  const endpoint = `${location.origin}/sparql`;
  const yasgui = new Yasgui(place, {
    requestConfig: { endpoint, method: "POST" },
    copyEndpointOnNewTab: true,
    endpointCatalogueOptions: { getData: () => [{ endpoint }] },
    persistenceId: null,
    yasr: { prefixes },
    yasqe: { value: query, createShareableLink: (editor) => `/sparql?query=${encodeURIComponent(editor.getValue())}` },
  });
  // Labels and roles that the editor lacks or sets wrong; it redraws itself with each result.
  const names = [
    ["input.autocomplete", "Endpoint"],
    [".CodeMirror textarea", "Query"],
    ["select.tableSizer", "Rows on a page"],
    ["input.tableFilter", "Filter the rows"],
  ];
  function name() {
    for (const [selector, label] of names) {
      for (const part of place.querySelectorAll(selector)) {
        if (!part.hasAttribute("aria-label")) part.setAttribute("aria-label", label);
      }
    }
    // An IRI in a result links to its entity page here, which links to the original.
    for (const link of place.querySelectorAll(".yasr_results a.iri:not([data-iri])")) {
      link.dataset.iri = link.title = link.getAttribute("href");
      link.href = `/entity?iri=${encodeURIComponent(link.dataset.iri)}`;
    }
    // A tablist may contain tabs only, so the button that adds a tab gets the role too.
    for (const button of place.querySelectorAll("[role=tablist] button.addTab:not([role])")) button.setAttribute("role", "tab");
  }
  new MutationObserver(name).observe(place, { childList: true, subtree: true });
  name();
  place.hidden = false;
  plain.hidden = true;
  for (const id of ["plain-result", "plain-refusal"]) {
    const shown = document.getElementById(id);
    if (shown) shown.hidden = true; // the editor runs the query again and shows the result itself
  }
  const tab = yasgui.getTab();
  tab.setQuery(query);
  tab.setRequestConfig({ endpoint });
  // CodeMirror uses the Tab key itself; Escape leaves the editor, for keyboard users.
  const editor = tab.getYasqe();
  // The server knows the common prefixes; the editor would mark them as errors, so those in use are declared to it.
  function declare() {
    const declared = editor.getPrefixesFromQuery();
    for (const [, name] of editor.getValue().matchAll(/(?<![\w<"':/.-])([A-Za-z][\w-]*):(?!\/\/)/g)) {
      if (prefixes[name] && !declared[name]) {
        declared[name] = prefixes[name];
        editor.addPrefixes({ [name]: prefixes[name] });
      }
    }
  }
  declare();
  editor.setOption("extraKeys", { ...editor.getOption("extraKeys"), Esc: () => editor.getInputField().blur(), Tab: false, "Shift-Tab": false });
})();
