import EasyNetwork
import Foundation

extension TimelinePicture {
    /// The picture as a page of HTML that loads nothing.
    func html(title: String) -> String {
        let title = Self.escaped(TimelineRecord.text(title))
        let since = begin.replacingOccurrences(of: "T", with: " ").replacingOccurrences(of: "Z", with: " UTC")
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta http-equiv="Content-Security-Policy"
              content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
            <title>\(title)</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <header>
            <h1>\(title)</h1>
            <p>\(summary), since \(since)</p>
            \(Self.head)
            <script type="application/json" id="data">\(json)</script>
            <script>
            \(Self.script)
            </script>
            </body>
            </html>

            """
    }

    /// JSON that cannot end its element, and that older parsers of scripts read too.
    private var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // It has finite numbers and texts only.
        let data = (try? encoder.encode(self)) ?? Data("{}".utf8)
        return String(decoding: data, as: UTF8.self)
            .replacingOccurrences(of: "<", with: "\\u003C")
            .replacingOccurrences(of: "\u{2028}", with: "\\u2028")
            .replacingOccurrences(of: "\u{2029}", with: "\\u2029")
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;")
            .replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;")
    }

    private static let head = #"""
        <div class="tools">
        <label class="search">Filter <input id="search" type="search" placeholder="name, host, tag, status, error"></label>
        <label><input id="critical" type="checkbox"> Critical path only</label>
        <span class="zoom" role="group" aria-label="Zoom">
        <button id="out" type="button" aria-label="Zoom out">−</button>
        <button id="fit" type="button" aria-label="Show the whole time">Fit</button>
        <button id="in" type="button" aria-label="Zoom in">+</button>
        </span>
        </div>
        <details id="legend"><summary>Legend and keys</summary>
        <ul>
        <li><i class="bar queued"></i>waits for a slot or for another row</li>
        <li><i class="bar slot"></i>has a slot, or the call runs</li>
        <li><i class="bar attempt"></i>message under way</li>
        <li><i class="bar attempt broken"></i>it failed</li>
        <li><i class="bar waiting"></i>waits for a connection</li>
        <li><i class="bar resolve"></i>name lookup</li>
        <li><i class="bar connect"></i>connect</li>
        <li><i class="bar tls"></i>TLS</li>
        <li><i class="bar firstByte"></i>until the first byte</li>
        <li><i class="bar body"></i>body</li>
        <li><i class="bar retry"></i>delay before a retry</li>
        <li><i class="bar credential"></i>waits for a credential</li>
        <li><svg class="mark hit"><use href="#hit"/></svg>from the cache</li>
        <li><svg class="mark miss"><use href="#miss"/></svg>not in the cache</li>
        <li><svg class="mark succeeded"><use href="#succeeded"/></svg>succeeded</li>
        <li><svg class="mark failed"><use href="#failed"/></svg>failed</li>
        <li><svg class="mark dependencyFailed"><use href="#dependencyFailed"/></svg>a dependency failed</li>
        <li><svg class="mark cancelled"><use href="#cancelled"/></svg>cancelled</li>
        <li><svg class="mark unfinished"><use href="#unfinished"/></svg>unfinished</li>
        <li><i class="path"></i>critical path</li>
        </ul>
        <p>Up and down: rows. Left and right: time. Enter: details. Escape: close. + and −, or Ctrl and the wheel: zoom.
        /: filter. Lines lead from what a row waits for (solid) and to what waits for it (dashed).</p>
        </details>
        <canvas id="overview" aria-hidden="true"></canvas>
        </header>
        <main id="view" tabindex="-1">
        <div id="sheet">
        <div id="axis" aria-hidden="true"><div class="corner"></div><div class="track"></div></div>
        <div id="grid" aria-hidden="true"></div>
        <ol id="list" role="list" aria-label="Jobs and calls in the order in which they were added"></ol>
        <svg id="links" aria-hidden="true"></svg>
        </div>
        <p id="none" hidden>No row matches.</p>
        </main>
        <p id="status" role="status"></p>
        <svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>
        <symbol id="succeeded" viewBox="0 0 12 12"><path d="M2 6.5 5 9.5 10 3" class="line"/></symbol>
        <symbol id="failed" viewBox="0 0 12 12"><path d="M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5" class="line"/></symbol>
        <symbol id="dependencyFailed" viewBox="0 0 12 12"><path d="M6 1 11 10.5H1Z" class="solid"/></symbol>
        <symbol id="cancelled" viewBox="0 0 12 12"><path d="M2 2H10V10H2Z" class="solid"/></symbol>
        <symbol id="unfinished" viewBox="0 0 12 12"><circle cx="6" cy="6" r="4.2" class="line"/></symbol>
        <symbol id="hit" viewBox="0 0 12 12"><path d="M6 1 11 6 6 11 1 6Z" class="solid"/></symbol>
        <symbol id="miss" viewBox="0 0 12 12"><path d="M6 1.5 10.5 6 6 10.5 1.5 6Z" class="line"/></symbol>
        </defs></svg>
        """#

    private static let style = #"""
        :root { --back: #fff; --front: #1c1e21; --quiet: #595f69; --edge: #d4d8de; --panel: #f5f6f8; --hover: #e9f0fb;
          --focus: #0b57d0; --path: #7a2c9e; --bad: #b3261e; --warn: #8a5300; --good: #1a6e36;
          --slot: #d9dee6; --queued: #858c97; --attempt: #7d8794;
          --waiting: #767676; --resolve: #7b2560; --connect: #c75500; --tls: #33257d; --firstByte: #1a7fc4; --body: #005246;
          --credential: #8a5300; --gutter: 264px; }
        @media (prefers-color-scheme: dark) { :root { --back: #15171a; --front: #e8eaed; --quiet: #a9b0ba; --edge: #383d45;
          --panel: #1e2126; --hover: #26303f; --focus: #8ab4f8; --path: #d7a6f2; --bad: #ff8a80; --warn: #ffb95c;
          --good: #7dd69a; --slot: #3a414c; --queued: #8a929e; --attempt: #8d97a5;
          --waiting: #9a9a9a; --resolve: #f7b6e0; --connect: #cf6f1e; --tls: #c9bfff; --firstByte: #3a8dcf; --body: #8ce8d6;
          --credential: #ffb95c; } }
        * { box-sizing: border-box; }
        html, body { height: 100%; margin: 0; }
        body { display: flex; flex-direction: column; background: var(--back); color: var(--front);
          font: 14px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
        header { padding: 12px 16px 8px; border-bottom: 1px solid var(--edge); }
        h1 { font-size: 18px; margin: 0; overflow-wrap: anywhere; }
        header p { margin: 2px 0 8px; color: var(--quiet); }
        .tools { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; }
        .search { display: flex; gap: 6px; align-items: center; flex: 0 1 360px; }
        input[type=search] { flex: 1; min-width: 0; font: inherit; color: inherit; background: var(--back); padding: 3px 8px;
          border: 1px solid var(--queued); border-radius: 6px; }
        .zoom { display: flex; gap: 4px; }
        .zoom button, .jump { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--queued);
          border-radius: 6px; min-width: 32px; padding: 3px 8px; cursor: pointer; }
        :focus-visible { outline: 2px solid var(--focus); outline-offset: -2px; }
        #legend { margin-top: 8px; }
        #legend summary { cursor: pointer; color: var(--quiet); }
        #legend ul { display: flex; flex-wrap: wrap; font-size: 13px; gap: 2px 16px; list-style: none; margin: 6px 0; padding: 0; }
        #legend li { display: flex; align-items: center; gap: 6px; }
        #legend .bar { position: static; display: inline-block; width: 24px; height: 14px; }
        #legend p { font-size: 13px; margin: 4px 0 0; }
        #legend .path { width: 5px; height: 14px; background: var(--path); }
        #overview { display: block; width: 100%; height: 56px; margin-top: 8px; cursor: pointer; background: var(--panel); }
        #overview[hidden] { display: none; }
        #view { flex: 1; min-height: 160px; overflow: auto; position: relative; }
        #sheet { position: relative; min-width: 100%; }
        #axis { position: sticky; top: 0; z-index: 4; display: flex; height: 26px; background: var(--back);
          border-bottom: 1px solid var(--edge); color: var(--quiet); font-size: 12px; }
        .corner, .label { flex: none; width: var(--gutter); position: sticky; left: 0; background: var(--back); }
        .corner { z-index: 1; }
        .track { position: relative; flex: 1; margin: 0 18px 0 14px; }
        #axis span { position: absolute; top: 4px; padding-left: 4px; white-space: nowrap; }
        #grid { position: absolute; top: 26px; bottom: 0; left: calc(var(--gutter) + 14px); right: 18px; }
        #grid i { position: absolute; top: 0; bottom: 0; border-left: 1px solid var(--edge); }
        #list { list-style: none; margin: 0; padding: 0 0 8px; position: relative; }
        .row { display: flex; width: 100%; height: 26px; padding: 0; border: 0; background: none; color: inherit; font: inherit;
          text-align: left; cursor: pointer; }
        .label { z-index: 2; display: flex; align-items: center; gap: 6px; padding: 0 8px 0 16px; height: 100%; }
        .label b { font-weight: 500; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .label span { color: var(--quiet); font-size: 12px; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .row:hover .label, .row:focus .label, .linked .label, .row[aria-expanded=true] .label { background: var(--hover); }
        .row:focus-visible .label { outline: 2px solid var(--focus); outline-offset: -2px; }
        .path .label { border-left: 5px solid var(--path); padding-left: 11px; }
        .row .track { height: 100%; }
        .bar { position: absolute; top: 5px; height: 16px; min-width: 2px; border-radius: 2px; }
        .track .queued { top: 9px; height: 8px; }
        .queued { background: repeating-linear-gradient(135deg, var(--queued) 0 1.5px, transparent 1.5px 6px);
          border-bottom: 1px solid var(--queued); }
        .slot { background: var(--slot); box-shadow: inset 0 0 0 1px var(--queued); }
        .attempt { background: var(--attempt); border-left: 2px solid var(--front); }
        .phase { border-radius: 0; min-width: 0; }
        .waiting { background: var(--waiting); } .resolve { background: var(--resolve); }
        .connect { background: var(--connect); } .tls { background: var(--tls); }
        .firstByte { background: var(--firstByte); } .body { background: var(--body); }
        .broken { border-bottom: 4px solid var(--bad); border-radius: 0; } .track .broken { background: none; }
        .retry { top: 8px; height: 10px; border-radius: 0; background: repeating-linear-gradient(90deg,
          var(--front) 0 3px, transparent 3px 6px) center / 100% 3px no-repeat var(--back); }
        .credential { background: repeating-linear-gradient(90deg, var(--credential) 0 2px, transparent 2px 5px);
          border-radius: 0; }
        .mark { flex: none; width: 12px; height: 12px; color: var(--quiet); fill: none; stroke: none; }
        .line { stroke: currentColor; stroke-width: 2; fill: none; } .solid { fill: currentColor; }
        .failed { color: var(--bad); } .dependencyFailed { color: var(--bad); } .cancelled { color: var(--warn); }
        .succeeded { color: var(--good); } .hit, .miss { color: var(--path); }
        .track .mark { position: absolute; top: 7px; margin-left: 2px; }
        .track .hit, .track .miss { margin-left: -12px; background: var(--back); border-radius: 6px; }
        #links { position: absolute; inset: 0; z-index: 1; pointer-events: none; overflow: visible; }
        #links path { fill: none; stroke: var(--front); stroke-width: 1.5; }
        #links .after { stroke-dasharray: 5 4; } #links .critical { stroke: var(--path); stroke-width: 2; }
        .details { position: sticky; left: 0; width: var(--shown, 100%); padding: 8px 16px 14px 27px;
          background: var(--panel); border-bottom: 1px solid var(--edge); z-index: 3; overflow-wrap: anywhere; }
        .details dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 0; }
        .details dt { color: var(--quiet); } .details dd { margin: 0; min-width: 0; }
        .details h2 { font-size: 14px; margin: 10px 0 2px; }
        .details ol { margin: 0; padding-left: 20px; } .details li { margin-top: 4px; }
        .details small { display: block; color: var(--quiet); font-size: 12px; }
        .details .wrong { color: var(--bad); }
        .jump { margin: 1px 4px 1px 0; padding: 0 6px; max-width: 100%; text-align: left; }
        #none { padding: 16px; margin: 0; } #none[hidden] { display: none; }
        #status { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); margin: 0; }
        @media (max-width: 640px) {
          :root { --gutter: 0px; }
          header { padding: 8px 10px 6px; } .corner { display: none; }
          .row { display: block; height: 46px; } .row .track { height: 24px; }
          .label { width: var(--shown, 100%); height: 22px; padding: 0 10px; } .path .label { padding-left: 5px; }
          .details { padding: 8px 10px 12px; }
          .bar { top: 3px; } .track .queued { top: 7px; } .retry { top: 6px; } .track .mark { top: 5px; }
        }
        @media (prefers-reduced-motion: no-preference) { .label { transition: background-color .1s; } }
        @media (forced-colors: active) { .bar, #legend .path { forced-color-adjust: none; } }
        """#

    private static let script = #"""
        "use strict";
        const data = JSON.parse(document.getElementById("data").textContent);
        const rows = data.rows, total = Math.max(data.length, 0.001);
        const id = name => document.getElementById(name);
        const view = id("view"), sheet = id("sheet"), list = id("list"), search = id("search"), overview = id("overview");
        const words = { succeeded: "succeeded", failed: "failed", dependencyFailed: "a dependency failed",
          cancelled: "cancelled", unfinished: "unfinished" };
        const phases = { waiting: "waits for a connection", resolve: "name lookup", connect: "connect", tls: "TLS",
          firstByte: "until the first byte", body: "body", retry: "delay before a retry",
          credential: "waits for a credential" };
        let zoom = 1, shown = null;

        function time(ms, step = 0) {
          if (ms === 0) return "0 ms";
          const digits = size => Math.max(0, Math.ceil(-Math.log10(step / size)));
          if (ms < 1) return ms.toFixed(step ? digits(1) : 2) + " ms";
          if (ms < 1000) return ms.toFixed(step ? digits(1) : ms < 10 ? 1 : 0) + " ms";
          if (ms < 120000) return (ms / 1000).toFixed(step ? digits(1000) : 2) + " s";
          return Math.floor(ms / 60000) + " min " + Math.round(ms % 60000 / 1000) + " s";
        }
        function make(tag, parent, text, className) {
          const element = document.createElement(tag);
          if (className) element.className = className;
          if (text !== undefined) element.textContent = text;
          parent.append(element);
          return element;
        }
        function symbol(name, parent, hint) {
          const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
          svg.setAttribute("class", "mark " + name);
          svg.setAttribute("aria-hidden", "true");
          svg.append(document.createElementNS(space, "use"));
          svg.firstChild.setAttribute("href", "#" + name);
          if (hint) svg.append(document.createElementNS(space, "title")), svg.lastChild.textContent = hint;
          parent.append(svg);
          return svg;
        }
        const share = ms => (ms / total * 100).toFixed(4) + "%";
        function bar(track, start, end, name, hint) {
          const element = make("i", track, undefined, "bar " + name);
          element.style.left = share(start);
          element.style.width = share(end - start);
          if (hint) element.title = hint + ", " + time(end - start);
        }

        // Rows

        function addRow(row) {
          const item = make("li", list, undefined, row.isCritical ? "path" : "");
          const button = make("button", item, undefined, "row");
          button.type = "button";
          button.tabIndex = -1;
          button.setAttribute("aria-expanded", "false");
          button.setAttribute("aria-label", [row.name, row.id, row.result, "took " + time(row.end - row.added),
            "added at " + time(row.added), row.attempts.length > 1 ? row.attempts.length + " attempts" : "",
            row.isCritical ? "on the critical path" : ""].filter(part => part).join(", "));
          const label = make("span", button, undefined, "label");
          symbol(row.outcome, label, words[row.outcome]);
          make("b", label, row.name).title = row.name;
          make("span", label, time(row.end - row.added));
          const track = make("span", button, undefined, "track");
          track.style.display = "block";
          let since = row.added;
          for (const slot of [...row.slots, { start: row.end }]) {
            if (slot.start > since) bar(track, since, slot.start, "queued", "waits for a slot or for another row");
            since = slot.end;
          }
          for (const slot of row.slots) bar(track, slot.start, slot.end, "slot", "has a slot");
          for (const wait of row.waits) bar(track, wait.start, wait.end, wait.kind, phases[wait.kind]);
          for (const attempt of row.attempts) {
            bar(track, attempt.start, attempt.end, "attempt", attempt.reason + ": " + attempt.request);
            for (const phase of attempt.phases) bar(track, phase.start, phase.end, "phase " + phase.kind, phases[phase.kind]);
            const problem = attempt.error === "cancelled" ? "" : attempt.error || (attempt.status >= 400 ? "status " + attempt.status : "");
            if (problem) bar(track, attempt.start, attempt.end, "broken", problem);
          }
          for (const answer of row.cache) {
            const hint = answer.miss ? "not in the cache: " + answer.miss : "from the cache";
            symbol(answer.miss ? "miss" : "hit", track, hint).style.left = share(answer.at);
          }
          if (row.outcome !== "succeeded") symbol(row.outcome, track, words[row.outcome]).style.left = share(row.end);
          row.item = item;
          row.button = button;
          button.row = row;
          row.text = [row.name, row.id, row.host, row.request, row.error, words[row.outcome], ...row.tags,
            ...row.attempts.map(attempt => attempt.status)].join(" ").toLowerCase();
        }

        // Details

        function toggle(row, open = row.button.getAttribute("aria-expanded") !== "true") {
          row.button.setAttribute("aria-expanded", open);
          if (row.details) row.details.remove();
          row.details = open ? addDetails(row) : null;
          draw();
        }
        function addDetails(row) {
          const box = make("div", row.item, undefined, "details"), facts = make("dl", box);
          const fact = (name, text, className) => {
            if (text === undefined || text === "") return null;
            make("dt", facts, name);
            return make("dd", facts, text, className);
          };
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", "Details of " + row.name);
          fact("Name", row.name + (row.id ? " (" + row.id + ")" : ""));
          fact("Request", row.request);
          fact("Host", row.host);
          fact("Tags", row.tags.join(", "));
          fact("Result", row.result);
          fact("Error", row.error, "wrong");
          fact("Root cause", row.rootCause, "wrong");
          fact("Added", time(row.added));
          if (!row.isCall) fact("Started", row.started === undefined ? "never" :
            time(row.started) + ", after " + time(row.started - row.added));
          fact(row.outcome === "unfinished" ? "Shown until" : "Ended", time(row.end));
          fact("Cache", row.cache.map(a => (a.miss ? "no: " + a.miss : "yes") + " at " + time(a.at)).join("; "));
          fact("Waits", row.waits.map(w => phases[w.kind] + ": " + time(w.end - w.start)).join("; "));
          const jumps = (name, others, names = []) => {
            const cell = others.length || names.length ? fact(name, names.join(", ") + " ") : null;
            for (const other of others.slice(0, 50)) {
              make("button", cell, rows[other].name, "jump").onclick = () => go(rows[other]);
            }
            if (others.length > 50) make("span", cell, "and " + (others.length - 50) + " more");
          };
          jumps("Waits for", row.dependencies, row.others);
          jumps("Needed by", row.dependents);
          if (row.attempts.length) {
            make("h2", box, "Messages");
            const attempts = make("ol", box);
            for (const attempt of row.attempts) {
              const end = attempt.status || attempt.error || "no answer";
              const item = make("li", attempts, attempt.reason + ": " + attempt.request + " → " + end +
                (attempt.status && attempt.error ? ", " + attempt.error : ""));
              make("small", item, "at " + time(attempt.start) + ", took " + time(attempt.end - attempt.start) +
                attempt.phases.map(p => "; " + phases[p.kind] + " " + time(p.end - p.start)).join("") +
                (attempt.note ? "; " + attempt.note : ""));
            }
          }
          return box;
        }
        function go(row) {
          if (row.item.hidden) {
            search.value = "";
            id("critical").checked = false;
            filter();
          }
          focus(row);
          const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
          row.button.scrollIntoView({ block: "center", inline: "nearest", behavior: still ? "auto" : "smooth" });
        }
        function focus(row) {
          const old = list.querySelector(".row[tabindex='0']");
          if (old) old.tabIndex = -1;
          row.button.tabIndex = 0;
          row.button.focus({ preventScroll: true });
          const box = row.button.getBoundingClientRect(), frame = view.getBoundingClientRect();
          if (box.top < frame.top + 28) view.scrollTop -= frame.top + 28 - box.top;
          if (box.bottom > frame.bottom) view.scrollTop += box.bottom - frame.bottom + 12;
        }

        // Lines between rows

        function draw(row = shown) {
          shown = row;
          const links = id("links"), frame = sheet.getBoundingClientRect();
          const edge = id("axis").lastChild.getBoundingClientRect();
          links.replaceChildren();
          for (const item of list.querySelectorAll(".linked")) item.classList.remove("linked");
          const x = ms => edge.left - frame.left + ms / total * edge.width;
          const y = one => {
            const box = one.button.lastChild.getBoundingClientRect();
            return (box.top + box.bottom) / 2 - frame.top;
          };
          const line = (from, to, name) => {
            if (from.item.hidden || to.item.hidden) return;
            const end = to.started === undefined ? to.end : to.started;
            const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
            path.setAttribute("class", name);
            path.setAttribute("d", `M${x(Math.min(from.end, end))} ${y(from)}V${y(to)}H${x(end)}`);
            links.append(path);
          };
          for (const one of rows) if (one.isCritical) {
            for (const other of one.dependencies) if (rows[other].isCritical) line(rows[other], one, "critical");
          }
          if (!row) return;
          for (const other of row.dependencies) line(rows[other], row, "before");
          for (const other of row.dependents) line(row, rows[other], "after");
          for (const other of [...row.dependencies, ...row.dependents]) rows[other].item.classList.add("linked");
        }

        // Time axis and zoom

        const gutter = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--gutter")) || 0;
        // Around a place from 0 to 1 of what is seen; without it around the row that has the focus.
        function setZoom(value, at) {
          const width = view.clientWidth - gutter(), row = document.activeElement.row;
          const middle = row && (row.started === undefined ? row.end : (row.started + row.end) / 2) / total * width;
          const place = at === undefined && row ? middle : (view.scrollLeft + (at ?? 0.5) * width) / zoom;
          zoom = Math.min(400, Math.max(1, value));
          sheet.style.width = gutter() + width * zoom + "px";
          sheet.style.setProperty("--shown", view.clientWidth + "px");
          view.scrollLeft = place * zoom - (at ?? 0.5) * width;
          const rough = total / Math.max(1, width * zoom / 68), size = 10 ** Math.floor(Math.log10(rough));
          const step = [1, 2, 5, 10].map(n => n * size).find(n => n >= rough);
          const axis = id("axis").lastChild, grid = id("grid");
          axis.replaceChildren();
          grid.replaceChildren();
          for (let n = 0; n * step < total && n < 5000; n++) {
            make("i", grid).style.left = share(n * step);
            if (n * step < total - step * 0.5 || n === 0) make("span", axis, time(n * step, step)).style.left = share(n * step);
          }
          draw();
          paint();
        }
        function paint() {
          overview.hidden = rows.length < 60;
          if (overview.hidden) return;
          const scale = devicePixelRatio || 1, context = overview.getContext("2d");
          const width = overview.width = overview.clientWidth * scale, height = overview.height = 56 * scale;
          const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(name);
          const colors = { queued: color("--edge"), slot: color("--firstByte"), bad: color("--bad") };
          rows.forEach((row, index) => {
            const top = index / rows.length * height, thick = Math.max(1, height / rows.length);
            const fill = (start, end, name) => {
              context.fillStyle = colors[name];
              context.fillRect(start / total * width, top, Math.max(1, (end - start) / total * width), thick);
            };
            fill(row.added, row.end, "queued");
            for (const slot of row.slots) fill(slot.start, slot.end, /ailed/.test(row.outcome) ? "bad" : "slot");
          });
        }

        // Filter and keys

        function filter() {
          const parts = search.value.toLowerCase().split(/\s+/).filter(part => part);
          let count = 0;
          for (const row of rows) {
            const fits = parts.every(part => row.text.includes(part)) && (row.isCritical || !id("critical").checked);
            row.item.hidden = !fits;
            if (fits) count++;
          }
          id("none").hidden = count > 0;
          id("status").textContent = count + " of " + rows.length + " rows";
          const current = list.querySelector(".row[tabindex='0']"), first = rows.find(row => !row.item.hidden);
          if (first && (!current || current.row.item.hidden)) {
            if (current) current.tabIndex = -1;
            first.button.tabIndex = 0;
          }
          draw();
        }
        const rowOf = event => {
          const item = event.target.closest("#list > li");
          return item ? item.firstChild.row : null;
        };
        list.addEventListener("click", event => {
          const button = event.target.closest(".row");
          if (button) focus(button.row), toggle(button.row);
        });
        list.addEventListener("pointerover", event => rowOf(event) === shown || draw(rowOf(event)));
        list.addEventListener("pointerleave", () => draw(document.activeElement.row || null));
        list.addEventListener("focusin", event => draw(rowOf(event)));
        list.addEventListener("focusout", () => draw(null));
        list.addEventListener("keydown", event => {
          const row = rowOf(event), seen = rows.filter(one => !one.item.hidden), index = seen.indexOf(row);
          const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: seen.length - 1, PageDown: index + 10,
            PageUp: index - 10 }[event.key];
          if (next !== undefined) focus(seen[Math.min(seen.length - 1, Math.max(0, next))]);
          else if (event.key === "ArrowRight") view.scrollLeft += 80;
          else if (event.key === "ArrowLeft") view.scrollLeft -= 80;
          else if (event.key === "Escape") toggle(row, false), focus(row);
          else return;
          event.preventDefault();
        });
        document.addEventListener("keydown", event => {
          if (event.ctrlKey || event.metaKey || event.altKey || event.target === search) return;
          if (event.key === "+" || event.key === "=") setZoom(zoom * 1.5);
          else if (event.key === "-") setZoom(zoom / 1.5);
          else if (event.key === "0") setZoom(1);
          else if (event.key === "/") search.focus(), event.preventDefault();
        });
        view.addEventListener("wheel", event => {
          if (!event.ctrlKey) return;
          event.preventDefault();
          const place = Math.max(0, event.clientX - gutter()) / (view.clientWidth - gutter());
          setZoom(zoom * Math.exp(-event.deltaY / 200), place);
        }, { passive: false });
        id("in").onclick = () => setZoom(zoom * 1.5);
        id("out").onclick = () => setZoom(zoom / 1.5);
        id("fit").onclick = () => setZoom(1);
        search.oninput = id("critical").onchange = filter;
        overview.onclick = event => go(rows[Math.floor(event.offsetY / overview.clientHeight * rows.length)]);

        rows.forEach(row => row.dependents = []);
        rows.forEach((row, index) => row.dependencies.forEach(other => rows[other].dependents.push(index)));
        rows.forEach(addRow);
        id("legend").open = innerWidth > 640 && innerHeight > 600;
        filter();
        new ResizeObserver(() => setZoom(zoom)).observe(view);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
        """#
}
