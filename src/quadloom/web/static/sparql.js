// YASGUI in place of the plain form, with completions from this warehouse's own words instead of other servers'.
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

  // A refusal of ours is JSON for programs; people read its two sentences.
  async function refusal(error) {
    let said;
    try {
      said = JSON.parse(error.text);
    } catch {
      return undefined;
    }
    if (!said || !said.error) return undefined;
    const shown = document.createElement("div");
    shown.setAttribute("role", "alert");
    const what = document.createElement("strong");
    what.textContent = said.error;
    const hint = document.createElement("p");
    hint.textContent = said.hint || "";
    shown.append(what, hint);
    return shown;
  }
  Yasgui.Yasr.defaults.errorRenderers = [refusal];

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
  // What the editor leaves without a name or with the wrong role; it draws anew with each result.
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
    // A thing in a result leads to what is said of it here; its page has the way out.
    for (const link of place.querySelectorAll(".yasr_results a.iri:not([data-iri])")) {
      link.dataset.iri = link.title = link.getAttribute("href");
      link.href = `/entity?iri=${encodeURIComponent(link.dataset.iri)}`;
    }
    // A list of tabs may hold tabs only, so the button that opens one counts as one.
    for (const button of place.querySelectorAll("[role=tablist] button.addTab:not([role])")) button.setAttribute("role", "tab");
  }
  new MutationObserver(name).observe(place, { childList: true, subtree: true });
  name();
  place.hidden = false;
  plain.hidden = true;
  for (const id of ["plain-result", "plain-refusal"]) {
    const shown = document.getElementById(id);
    if (shown) shown.hidden = true; // the editor asks again and shows it itself
  }
  const tab = yasgui.getTab();
  tab.setQuery(query);
  tab.setRequestConfig({ endpoint });
  // CodeMirror keeps Tab for itself; Escape gives it back to the keyboard user.
  const editor = tab.getYasqe();
  // The server knows the common prefixes; the editor would mark them as errors, so it is told those that are used.
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
