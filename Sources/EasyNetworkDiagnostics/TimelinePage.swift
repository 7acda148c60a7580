/// The parts of the page of a timeline. Made by `.ci/formats page --update` from the files in the folder `Page`.
enum TimelinePage {
    /// The picture that is seen before the script has run.
    static let body = #"""
        <div class="tools">
        <label class="search">Filter <input id="search" type="search" placeholder="name, host, tag, status, reason"></label>
        <label><input id="critical" type="checkbox"> Critical path only</label>
        <button id="unfold" type="button" aria-pressed="false">Unfold all</button>
        <span class="zoom" role="group" aria-label="Zoom">
        <button id="out" type="button" aria-label="Zoom out">−</button>
        <button id="fit" type="button" aria-label="Show the whole time">Fit</button>
        <button id="in" type="button" aria-label="Zoom in">+</button>
        </span>
        </div>
        <details id="legend"><summary>Legend and keys</summary>
        <ul>
        <li data-kind="job"><i class="bar wait job"></i>waits for another job</li>
        <li data-kind="slot"><i class="bar wait slot"></i>waits for a slot or a rate</li>
        <li data-kind="other"><i class="bar wait other"></i>waits for something else, which is named</li>
        <li><i class="bar slot"></i>has a slot, or the call runs</li>
        <li data-kind="attempt"><i class="bar attempt"></i>message under way</li>
        <li data-kind="broken"><i class="bar attempt"></i><i class="bar broken"></i>the message failed</li>
        <li data-kind="waiting"><i class="bar phase waiting"></i>waits for a connection</li>
        <li data-kind="resolve"><i class="bar resolve"></i>name lookup</li>
        <li data-kind="connect"><i class="bar connect"></i>connect</li>
        <li data-kind="tls"><i class="bar tls"></i>TLS</li>
        <li data-kind="firstByte"><i class="bar firstByte"></i>until the first byte</li>
        <li data-kind="body"><i class="bar body"></i>body</li>
        <li data-kind="profile"><svg class="sample" viewBox="0 0 24 14" aria-hidden="true"><path d="M0 14V7H6V2H14V8H20V14Z"/></svg>how many children run</li>
        <li data-kind="hit"><svg class="mark hit"><use href="#hit"/></svg>from the cache</li>
        <li data-kind="miss"><svg class="mark miss"><use href="#miss"/></svg>not in the cache</li>
        <li data-kind="succeeded"><svg class="mark succeeded"><use href="#succeeded"/></svg>succeeded</li>
        <li data-kind="failed"><svg class="mark failed"><use href="#failed"/></svg>failed</li>
        <li data-kind="dependencyFailed"><svg class="mark dependencyFailed"><use href="#dependencyFailed"/></svg>a dependency failed</li>
        <li data-kind="cancelled"><svg class="mark cancelled"><use href="#cancelled"/></svg>cancelled</li>
        <li data-kind="unfinished"><svg class="mark unfinished"><use href="#unfinished"/></svg>unfinished</li>
        <li data-kind="path"><i class="path"></i>critical path</li>
        </ul>
        <p>Up and down: rows. Right and left: unfold and fold, or time. Enter: details. Escape: close. + and −, or Ctrl and the
        wheel: zoom. /: filter. Solid lines come from the rows that a row needs; dashed lines
        lead to the rows that need it.</p>
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
        <noscript><p>This page draws the rows with a script, but scripts are switched off.</p></noscript>
        </main>
        <p id="status" role="status"></p>
        <svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>
        <symbol id="succeeded" viewBox="0 0 12 12"><path d="M2 6.5 5 9.5 10 3" class="line"/></symbol>
        <symbol id="failed" viewBox="0 0 12 12"><path d="M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5" class="line"/></symbol>
        <symbol id="dependencyFailed" viewBox="0 0 12 12"><path d="M6 1 11 10.5H1Z" class="solid"/></symbol>
        <symbol id="cancelled" viewBox="0 0 12 12"><path d="M2 2H10V10H2Z" class="solid"/></symbol>
        <symbol id="unfinished" viewBox="0 0 12 12"><circle cx="6" cy="6" r="4.2" class="line"/></symbol>
        <symbol id="twisty" viewBox="0 0 12 12"><path d="M4 2 8.5 6 4 10" class="line"/></symbol>
        <symbol id="hit" viewBox="0 0 12 12"><path d="M6 1 11 6 6 11 1 6Z" class="solid"/></symbol>
        <symbol id="miss" viewBox="0 0 12 12"><path d="M6 1.5 10.5 6 6 10.5 1.5 6Z" class="line"/></symbol>
        </defs></svg>
        """#

    static let style = #"""
        :root { --back: #fff; --front: #1c1e21; --quiet: #595f69; --edge: #d4d8de; --panel: #f5f6f8; --hover: #e9f0fb;
          --focus: #0b57d0; --path: #7a2c9e; --bad: #b3261e; --warn: #8a5300; --good: #1a6e36;
          --slot: #d9dee6; --queued: #858c97; --attempt: #4a74a8;
          --resolve: #7b2560; --connect: #c75500; --tls: #33257d; --firstByte: #1a7fc4; --body: #005246;
          --credential: #8a5300; --gutter: 264px; }
        @media (prefers-color-scheme: dark) { :root { --back: #15171a; --front: #e8eaed; --quiet: #a9b0ba; --edge: #383d45;
          --panel: #1e2126; --hover: #26303f; --focus: #8ab4f8; --path: #d7a6f2; --bad: #ff8a80; --warn: #ffb95c;
          --good: #7dd69a; --slot: #3a414c; --queued: #8a929e; --attempt: #7fa6d6;
          --resolve: #f7b6e0; --connect: #cf6f1e; --tls: #c9bfff; --firstByte: #3a8dcf; --body: #8ce8d6;
          --credential: #ffb95c; } }
        * { box-sizing: border-box; }
        html, body { height: 100%; margin: 0; }
        body { display: flex; flex-direction: column; background: var(--back); color: var(--front);
          font: 14px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
        header { padding: 12px 16px 8px; border-bottom: 1px solid var(--edge); }
        h1 { font-size: 18px; margin: 0; overflow-wrap: anywhere; }
        header p { margin: 2px 0 8px; color: var(--quiet); }
        .tools { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; }
        .search { display: flex; gap: 6px; align-items: center; flex: 0 1 300px; }
        input[type=search] { flex: 1; min-width: 0; font: inherit; color: inherit; background: var(--back); padding: 3px 8px;
          border: 1px solid var(--queued); border-radius: 6px; }
        .zoom { display: flex; gap: 4px; }
        .zoom button, #unfold, .jump { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--queued);
          border-radius: 6px; min-width: 32px; padding: 3px 8px; cursor: pointer; }
        #unfold[hidden] { display: none; }
        :focus-visible { outline: 2px solid var(--focus); outline-offset: -2px; }
        #legend { margin-top: 8px; }
        #legend summary { cursor: pointer; color: var(--quiet); }
        #legend ul { display: flex; flex-wrap: wrap; font-size: 13px; gap: 2px 16px; list-style: none; margin: 6px 0; padding: 0; }
        #legend li { display: flex; align-items: center; gap: 6px; }
        #legend li[hidden] { display: none; }
        #legend .bar { position: static; display: inline-block; width: 24px; height: 14px; }
        #legend .wait { height: 8px; } #legend .wait.job { height: 2px; } #legend .broken { margin-left: -30px; }
        #legend .sample { width: 24px; height: 14px; fill: var(--firstByte); }
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
        .track { display: block; position: relative; flex: 1; margin: 0 18px 0 14px; }
        #axis span { position: absolute; top: 4px; padding-left: 4px; white-space: nowrap; }
        #grid { position: absolute; top: 26px; bottom: 0; left: calc(var(--gutter) + 14px); right: 18px; }
        #grid i { position: absolute; top: 0; bottom: 0; border-left: 1px solid var(--edge); }
        #list { list-style: none; margin: 0; padding: 0; position: relative; }
        #list > li { position: absolute; left: 0; width: 100%; }
        .row { display: flex; width: 100%; height: 26px; padding: 0; border: 0; background: none; color: inherit; font: inherit;
          text-align: left; cursor: pointer; }
        .label { z-index: 2; display: flex; align-items: center; gap: 6px; height: 100%; padding: 0 8px 0 calc(16px + 14px * var(--depth, 0)); }
        .label b { font-weight: 500; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .label span, .label em { color: var(--quiet); font-size: 12px; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .label b span { font-size: 13px; font-weight: 400; }
        .label em { font-size: 11px; font-style: normal; border: 1px solid var(--queued); border-radius: 8px; padding: 0 6px; }
        .label .twisty { margin: 0 -2px 0 -4px; } .label .twisty.open { transform: rotate(90deg); }
        .row:hover .label, .row:focus .label, .linked .label, .row[aria-expanded=true] .label { background: var(--hover); }
        .row:focus-visible .label { outline: 2px solid var(--focus); outline-offset: -2px; }
        .path .label { border-left: 5px solid var(--path); padding-left: calc(11px + 14px * var(--depth, 0)); }
        .heading .row { background: var(--panel); } .heading .label { background: var(--panel); } .heading .label b { font-weight: 700; }
        .row .track { height: 100%; }
        .bar { position: absolute; top: 5px; height: 16px; min-width: 2px; border-radius: 2px; }
        .wait { border-radius: 0; }
        .track .wait { top: 9px; height: 8px; } .track .wait.job { top: 12px; height: 2px; }
        .wait.job { background: var(--queued); }
        .wait.slot { background: repeating-linear-gradient(135deg, var(--queued) 0 1.5px, transparent 1.5px 6px); box-shadow: none;
          border-bottom: 1px solid var(--queued); }
        .wait.other { background: repeating-linear-gradient(90deg, var(--credential) 0 2px, transparent 2px 5px) var(--back); }
        .slot { background: var(--slot); box-shadow: inset 0 0 0 1px var(--queued); }
        .attempt { background: var(--attempt); border-left: 2px solid var(--front); }
        .span { background: var(--slot); opacity: .6; }
        .profile { position: absolute; top: 5px; height: 16px; fill: var(--firstByte); min-width: 2px; }
        .phase { border-radius: 0; min-width: 0; }
        .waiting { background: var(--back); box-shadow: inset 0 0 0 1.5px var(--attempt); } .resolve { background: var(--resolve); }
        .connect { background: var(--connect); } .tls { background: var(--tls); }
        .firstByte { background: var(--firstByte); } .body { background: var(--body); }
        .broken { border-bottom: 4px solid var(--bad); border-radius: 0; } .track .broken { background: none; }
        .track .why { position: absolute; top: 4px; color: var(--quiet); font-size: 12px; line-height: 18px; white-space: nowrap;
          overflow: hidden; text-overflow: ellipsis; }
        .track .plate { background: var(--back); margin-left: 6px; padding: 0 4px; top: 4px; border-radius: 3px; }
        .mark { flex: none; width: 12px; height: 12px; color: var(--quiet); fill: none; stroke: none; }
        .line { stroke: currentColor; stroke-width: 2; fill: none; } .solid { fill: currentColor; }
        .failed { color: var(--bad); } .dependencyFailed { color: var(--bad); } .cancelled { color: var(--warn); }
        .succeeded { color: var(--good); } .hit, .miss { color: var(--path); }
        .track .mark { position: absolute; top: 7px; margin-left: 2px; }
        .track .hit, .track .miss { margin-left: -12px; background: var(--back); border-radius: 6px; }
        #links { position: absolute; left: 0; top: 0; width: 1px; height: 1px; z-index: 1; pointer-events: none; overflow: visible; }
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
          header { padding: 8px 10px 6px; } .search { flex: 1 1 100%; } .corner { display: none; }
          .row { display: block; height: 46px; } .row .track { height: 24px; }
          .label .why { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; }
          .label b { flex: 0 1 auto; min-width: 0; } .label:has(.why) b { max-width: 62%; } .label .time { flex: none; margin-left: auto; }
          .label { width: var(--shown, 100%); height: 22px; padding: 0 10px 0 calc(10px + 10px * var(--depth, 0)); }
          .path .label { padding-left: calc(5px + 10px * var(--depth, 0)); }
          .details { padding: 8px 10px 12px; }
          .bar, .profile { top: 3px; } .track .wait { top: 7px; } .track .wait.job { top: 10px; } .track .mark { top: 5px; }
        }
        @media (prefers-reduced-motion: no-preference) { .label { transition: background-color .1s; } }
        @media (forced-colors: active) { .bar, #legend .path { forced-color-adjust: none; } }
        """#

    /// The SHA-256 of the text of the script's element, in Base64: the script, and a line feed at either end.
    static let scriptDigest = "5yXetFtzDydxIEGyjZvmR9LFXL5Hpnzw54miQF7XiD0="

    static let script = #"""
        "use strict";
        // The script of the page that Timeline.html(title:) creates. Only visible rows are elements of the document.
        const data = JSON.parse(document.getElementById("data").textContent);
        const rows = data.rows, total = Math.max(data.length, 0.001);
        const id = name => document.getElementById(name);
        const view = id("view"), sheet = id("sheet"), list = id("list"), search = id("search"), overview = id("overview");
        const words = { succeeded: "succeeded", failed: "failed", dependencyFailed: "a dependency failed",
          cancelled: "cancelled", unfinished: "unfinished" };
        const phases = { waiting: "waits for a connection", resolve: "name lookup", connect: "connect", tls: "TLS",
          firstByte: "until the first byte", body: "body" };
        const waitWords = { job: "for another job", slot: "for a slot", other: "" };
        const isNarrow = matchMedia("(max-width: 640px)"), isStill = matchMedia("(prefers-reduced-motion: reduce)");
        // The number of siblings with one name beyond which they are folded, and groups start folded.
        const foldCount = 10;
        // The height of the axis, and the space before and after a track.
        const axisHeight = 26, before = 14, behind = 18;
        let zoom = 1, hovered = null, current = null, gutter = 0, height = 26;

        // Elements

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
        function draw(tag, parent, attributes) {
          const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
          for (const name in attributes) element.setAttribute(name, attributes[name]);
          parent.append(element);
          return element;
        }
        function symbol(name, parent, hint) {
          const svg = draw("svg", parent, { class: "mark " + name, "aria-hidden": "true" });
          draw("use", svg, { href: "#" + name });
          if (hint) draw("title", svg, {}).textContent = hint;
          return svg;
        }
        const share = ms => (ms / total * 100).toFixed(4) + "%";
        function bar(track, start, end, name, hint) {
          const element = make("i", track, undefined, "bar " + name);
          element.style.left = share(start);
          element.style.width = share(end - start);
          if (hint) element.title = hint + ", " + time(end - start);
        }
        const pen = document.createElement("canvas").getContext("2d"), widths = new Map();
        function widthOf(text, size) {
          const key = size + text;
          if (!widths.has(key)) {
            pen.font = size + "px " + getComputedStyle(document.body).fontFamily;
            widths.set(key, pen.measureText(text).width);
          }
          return widths.get(key);
        }

        // Items: a row, or several rows of one name. A group has its children below it.

        const none = [];
        for (const row of rows) {
          for (const name of ["tags", "slots", "waits", "attempts", "cache", "dependencies", "others"]) row[name] ??= none;
          row.dependents = [];
        }
        rows.forEach((row, index) => row.dependencies.forEach(other => rows[other].dependents.push(index)));
        const newItem = row => ({ row, children: [], parent: null, isOpen: false, place: -1, depth: 0, element: null, details: null,
          isCritical: row ? !!row.isCritical : false });
        const items = rows.map(newItem);
        rows.forEach((row, index) => row.item = items[index]);
        function textOf(row) {
          return row.text ??= [row.name, row.id, row.host, row.request, row.error, row.why, row.priority, words[row.outcome],
            ...row.tags, ...row.attempts.map(attempt => attempt.status)].join(" ").toLowerCase();
        }
        // Returns the siblings, with siblings of one name folded. Numbers in a name are ignored.
        const keyOf = item => item.key ??= item.row.name.replace(/\d+/g, "#");
        function folded(siblings) {
          const names = new Map();
          for (const item of siblings) {
            if (item.children.length) continue;
            const key = keyOf(item);
            if (names.has(key)) names.get(key).push(item); else names.set(key, [item]);
          }
          const result = [], isWhole = siblings.length > 0 && siblings[0].parent !== null && names.size === 1;
          for (const item of siblings) {
            const same = item.children.length || isWhole ? none : names.get(keyOf(item));
            if (same.length < foldCount) result.push(item);
            else if (same[0] === item) {
              const fold = newItem(null);
              fold.parent = item.parent;
              fold.children = same;
              for (const child of same) child.parent = fold;
              result.push(fold);
            }
          }
          return result;
        }
        const roots = (() => {
          const first = [];
          for (const item of items) {
            item.parent = item.row.parent === undefined ? null : items[item.row.parent];
            (item.parent ? item.parent.children : first).push(item);
          }
          for (const item of items) if (item.children.length) {
            item.isOpen = item.row.isHeading || item.children.length < foldCount;
            item.children = folded(item.children);
          }
          return folded(first);
        })();
        for (const item of items) {
          for (let one = item.parent; item.isCritical && one; one = one.parent) one.isCritical = true;
        }
        const hasFolds = roots.some(item => item.children.length);

        // Returns the summary of an item with children, which is created when the item is first shown.
        function summaryOf(item) {
          if (item.summary) return item.summary;
          const leaves = [], collect = one => one.children.length ? one.children.forEach(collect) : leaves.push(one.row);
          item.children.forEach(collect);
          const changes = [], reasons = new Map();
          let start = Infinity, end = 0, problems = 0;
          for (const row of leaves) {
            start = Math.min(start, row.added);
            end = Math.max(end, row.end);
            if (/ailed/.test(row.outcome)) problems++;
            if (row.why) reasons.set(row.why, (reasons.get(row.why) ?? 0) + 1);
            for (const slot of row.slots) changes.push([slot.start, 1], [slot.end, -1]);
          }
          // At equal times, ends come before starts.
          changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
          const steps = Math.min(240, 4 * leaves.length), profile = new Array(steps).fill(0), length = Math.max(end - start, 1e-6);
          let running = 0, peak = 0, last = 0;
          for (const [at, change] of changes) {
            const step = Math.min(steps - 1, Math.max(0, Math.floor((at - start) / length * steps)));
            for (let n = last; n <= step; n++) profile[n] = Math.max(profile[n], running);
            running += change;
            profile[step] = Math.max(profile[step], running);
            peak = Math.max(peak, running);
            last = step + 1;
          }
          const firstName = leaves[0].name, lastName = leaves[leaves.length - 1].name;
          const isOne = leaves.every(row => row.name === firstName), group = item.row && item.row.group;
          const count = leaves.length;
          const what = isOne ? count + " " + firstName : count + " jobs" + (item.row ? "" : ", " + firstName + " … " + lastName);
          const often = [...reasons].sort((a, b) => b[1] - a[1])[0];
          const pace = group && group.isChain ? ", one after the other" : peak > 1 ? ", " + peak + " at a time" : "";
          const text = [...reasons.keys(), firstName, isOne ? "" : lastName].join(" ");
          return item.summary = { start, end, peak, profile, problems, what, pace, text,
            why: often && often[1] * 2 > count ? often[0] : "",
            outcome: item.row ? item.row.outcome : problems ? "failed" : leaves.some(row => row.outcome === "unfinished")
              ? "unfinished" : leaves.every(row => row.outcome === "cancelled") ? "cancelled" : "succeeded" };
        }
        // Returns the name, and the less prominent text after it.
        function nameOf(item) {
          if (!item.children.length) return [item.row.name, ""];
          const { what, pace, problems } = summaryOf(item), more = problems ? ", " + problems + " failed" : "";
          return item.row ? [item.row.name, what + pace + more] : [what, pace.replace(/^, /, "") + more];
        }

        // Which items are shown, and where

        let seen = [], openItems = [];
        function filter() {
          const parts = search.value.toLowerCase().split(/\s+/).filter(part => part), isPath = id("critical").checked;
          const isFiltered = parts.length > 0 || isPath;
          let count = 0;
          const hits = item => {
            let own = 0;
            if (item.row) {
              const text = parts.length ? textOf(item.row) : "";
              own = (!isPath || item.isCritical) && parts.every(part => text.includes(part)) ? 1 : 0;
              count += own;
            }
            item.hits = own;
            for (const child of item.children) item.hits += hits(child);
            item.place = -1;
            return item.hits;
          };
          const visit = (item, depth) => {
            if (!item.hits) return;
            item.depth = depth;
            item.place = seen.length;
            seen.push(item);
            const isOpen = item.isOpen || (isFiltered && item.hits <= foldCount);
            item.isShownOpen = item.children.length > 0 && isOpen;
            if (item.isShownOpen) for (const child of item.children) visit(child, depth + 1);
          };
          seen = [];
          for (const item of roots) hits(item);
          for (const item of roots) visit(item, 0);
          openItems = seen.filter(item => item.details);
          if (!current || current.place < 0) current = seen[0] ?? null;
          id("none").hidden = seen.length > 0;
          id("status").textContent = count + " of " + rows.length + " rows";
          clear();
          render();
        }
        function topOf(item) {
          let result = item.place * height;
          for (const open of openItems) {
            if (open.place >= item.place) break;
            result += open.detailsHeight;
          }
          return result;
        }
        const wholeHeight = () => openItems.reduce((sum, item) => sum + item.detailsHeight, seen.length * height);
        function indexAt(y) {
          let low = 0, high = seen.length - 1;
          while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (topOf(seen[middle]) <= y) low = middle; else high = middle - 1;
          }
          return low;
        }
        function shownFor(item) {
          while (item && item.place < 0) item = item.parent;
          return item;
        }

        // Visible rows

        let hadFocus = false;
        function clear() {
          hadFocus ||= list.contains(document.activeElement);
          for (const element of [...list.children]) element.item.element = null;
          list.replaceChildren();
        }
        function render() {
          hadFocus ||= list.contains(document.activeElement);
          list.style.height = wholeHeight() + "px";
          const wanted = [];
          if (seen.length) {
            const first = Math.max(0, indexAt(view.scrollTop - axisHeight) - 4);
            const last = Math.min(seen.length - 1, indexAt(view.scrollTop + view.clientHeight) + 4);
            // The focusable row is kept, so that the focus is not lost.
            if (current && current.place < first) wanted.push(current);
            for (let n = first; n <= last; n++) wanted.push(seen[n]);
            if (current && current.place > last) wanted.push(current);
          }
          const kept = new Set(wanted);
          for (const element of [...list.children]) if (!kept.has(element.item)) {
            element.item.element = null;
            element.remove();
          }
          wanted.forEach((item, index) => {
            const element = item.element ?? addItem(item);
            if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
            element.style.top = topOf(item) + "px";
          });
          for (const item of wanted) if (item.details && item.element.lastChild.offsetHeight !== item.detailsHeight) {
            item.detailsHeight = item.element.lastChild.offsetHeight;
            return render();
          }
          if (hadFocus && current && !list.contains(document.activeElement)) current.element.firstChild.focus({ preventScroll: true });
          hadFocus = false;
          ticks();
          lines();
        }
        function addItem(item) {
          const element = document.createElement("li"), button = make("button", element, undefined, "row");
          item.element = element;
          element.item = item;
          element.className = item.row && item.row.isHeading ? "heading" : item.isCritical ? "path" : "";
          element.setAttribute("aria-setsize", seen.length);
          element.setAttribute("aria-posinset", item.place + 1);
          button.type = "button";
          button.tabIndex = item === current ? 0 : -1;
          const row = item.row, parts = item.children.length ? summaryOf(item) : null, isFolded = parts && !item.isShownOpen;
          const [name, more] = nameOf(item), start = row ? row.added : parts.start, end = row ? row.end : parts.end;
          const outcome = parts ? parts.outcome : row.outcome, why = row ? row.why : parts.why;
          const reason = why ? (outcome === "unfinished" ? "waits for " : row ? "waited for " : "mostly waited for ") + why : "";
          button.setAttribute("aria-expanded", row ? !!item.details : item.isShownOpen);
          button.setAttribute("aria-label", [name, more, row && row.id, row && row.priority ? row.priority + " priority" : "",
            row ? row.result : words[outcome], "took " + time(end - start), "added at " + time(start), reason,
            row && row.attempts.length > 1 ? row.attempts.length + " attempts" : "", item.depth ? "in " + nameOf(item.parent)[0] : "",
            parts ? (item.isShownOpen ? "unfolded" : "folded") : "", item.isCritical ? "on the critical path" : ""]
            .filter(part => part).join(", "));

          const label = make("span", button, undefined, "label");
          label.style.setProperty("--depth", item.depth);
          if (parts) symbol("twisty", label).classList.toggle("open", item.isShownOpen);
          symbol(outcome, label, words[outcome]);
          const title = make("b", label, name);
          title.title = name + (more ? ": " + more : "");
          if (more) make("span", title, (row ? " " : ", ") + more);
          if (row && row.priority) make("em", label, row.priority).title = row.priority + " priority";
          if (reason && isNarrow.matches) make("span", label, reason, "why");
          make("span", label, time(end - start), "time");

          const track = make("span", button, undefined, "track");
          if (isFolded || !row) addProfile(track, parts); else addBars(track, row);
          if (reason && !isNarrow.matches) {
            const wait = row && row.waits.findLast(one => one.why === why);
            addReason(track, reason, start, end, wait ?? { start, end });
          }
          if (item.details) element.append(addDetails(row));
          return element;
        }
        function addBars(track, row) {
          for (const wait of row.waits) {
            bar(track, wait.start, wait.end, "wait " + wait.kind, wait.why ? "waits for " + wait.why : "waits " + waitWords[wait.kind]);
          }
          for (const slot of row.slots) bar(track, slot.start, slot.end, "slot", "has a slot");
          // This wait is drawn over the slot, because it starts before the slot is released.
          for (const wait of row.waits) if (wait.kind === "other") bar(track, wait.start, wait.end, "wait other", "waits for " + wait.why);
          for (const attempt of row.attempts) {
            bar(track, attempt.start, attempt.end, "attempt", attempt.reason + ": " + attempt.request);
            for (const phase of attempt.phases ?? none) bar(track, phase.start, phase.end, "phase " + phase.kind, phases[phase.kind]);
            const problem = attempt.error === "cancelled" ? "" : attempt.error || (attempt.status >= 400 ? "status " + attempt.status : "");
            if (problem) bar(track, attempt.start, attempt.end, "broken", problem);
          }
          for (const answer of row.cache) {
            const hint = answer.miss ? "not in the cache: " + answer.miss : "from the cache";
            symbol(answer.miss ? "miss" : "hit", track, hint).style.left = share(answer.at);
          }
          if (row.outcome !== "succeeded") symbol(row.outcome, track, words[row.outcome]).style.left = share(row.end);
        }
        // Draws how many children run at each time.
        function addProfile(track, { start, end, peak, profile }) {
          const hint = "up to " + peak + " at a time";
          bar(track, start, end, "span", hint);
          const svg = draw("svg", track, { class: "profile", viewBox: `0 0 ${profile.length} ${Math.max(1, peak)}`,
            preserveAspectRatio: "none", "aria-hidden": "true" });
          svg.style.left = share(start);
          svg.style.width = share(end - start);
          const base = Math.max(1, peak);
          draw("path", svg, { d: `M0 ${base}` + profile.map((count, n) => `V${base - count}H${n + 1}`).join("") + `V${base}Z` });
        }
        // Adds the reason after the bar, before it, or over the wait, wherever there is room.
        function addReason(track, text, start, end, wait) {
          const width = widthOf(text, 12) + 2, all = trackWidth(), px = ms => ms / total * all;
          const behindEnd = all + behind - px(end) - 24, beforeStart = px(start) - 8, over = px(wait.end - wait.start) - 20;
          const room = [behindEnd, beforeStart, over], place = room.findIndex(one => one >= width);
          const best = place >= 0 ? place : room.indexOf(Math.max(...room));
          if (room[best] < 40) return;
          const caption = make("span", track, text, best === 2 ? "why plate" : "why");
          caption.style.maxWidth = Math.min(width + 10, room[best]) + "px";
          if (best === 0) caption.style.left = `calc(${share(end)} + 18px)`;
          else if (best === 1) caption.style.right = `calc(100% - ${share(start)} + 8px)`;
          else caption.style.left = share(wait.start);
        }

        // Folding and details

        function fold(item, isOpen) {
          if (!item.children.length || item.isShownOpen === isOpen) return;
          item.isOpen = isOpen;
          filter();
        }
        function foldAll(isOpen) {
          const visit = item => {
            if (!item.children.length) return;
            item.isOpen = isOpen;
            item.children.forEach(visit);
          };
          roots.forEach(visit);
          id("unfold").textContent = isOpen ? "Fold all" : "Unfold all";
          id("unfold").setAttribute("aria-pressed", isOpen);
          current = null;
          view.scrollTop = 0;
          filter();
        }
        function toggle(item, isOpen = !item.details) {
          if (!item.row || !!item.details === isOpen) return;
          item.details = isOpen;
          item.detailsHeight = 0;
          openItems = seen.filter(one => one.details);
          item.element.firstChild.setAttribute("aria-expanded", isOpen);
          if (isOpen) item.element.append(addDetails(item.row)); else item.element.lastChild.remove();
          render();
        }
        function addDetails(row) {
          const box = document.createElement("div"), facts = make("dl", box);
          box.className = "details";
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", "Details of " + row.name);
          const fact = (name, text, className) => {
            if (text === undefined || text === "") return null;
            make("dt", facts, name);
            return make("dd", facts, text, className);
          };
          const isEnded = row.outcome !== "unfinished";
          fact("Name", row.name + (row.id ? " (" + row.id + ")" : ""));
          fact("Request", row.request);
          fact("Host", row.host);
          fact("Tags", row.tags.join(", "));
          fact("Priority", row.priority);
          if (row.item.children.length) fact("Children", row.item.summary.what + row.item.summary.pace);
          fact("Result", row.result);
          fact("Error", row.error, "wrong");
          fact("Root cause", row.rootCause, "wrong");
          fact("Added", time(row.added));
          if (!row.isCall) fact("Started", row.started === undefined ? "never" :
            time(row.started) + ", after " + time(row.started - row.added));
          fact(isEnded ? "Ended" : "Shown until", time(row.end));
          fact("Cache", row.cache.map(a => (a.miss ? "no: " + a.miss : "yes") + " at " + time(a.at)).join("; "));
          fact(isEnded ? "Waited" : "Waits", row.waits.map(wait =>
            (wait.why ? "for " + wait.why : waitWords[wait.kind]) + ": " + time(wait.end - wait.start)).join("; "));
          const jumps = (name, others, names = none) => {
            const cell = others.length || names.length ? fact(name, names.join(", ") + " ") : null;
            for (const other of others.slice(0, 50)) make("button", cell, rows[other].name, "jump").onclick = () => go(rows[other].item);
            if (others.length > 50) make("span", cell, "and " + (others.length - 50) + " more");
          };
          if (row.parent !== undefined) jumps("Part of", [row.parent]);
          jumps("Needs", row.dependencies, row.others);
          jumps("Needed by", row.dependents);
          if (row.attempts.length) {
            make("h2", box, "Messages");
            const attempts = make("ol", box);
            for (const attempt of row.attempts) {
              const end = attempt.status || attempt.error || "no response";
              const item = make("li", attempts, attempt.reason + ": " + attempt.request + " → " + end +
                (attempt.status && attempt.error ? ", " + attempt.error : ""));
              make("small", item, "at " + time(attempt.start) + ", took " + time(attempt.end - attempt.start) +
                (attempt.phases ?? none).map(p => "; " + phases[p.kind] + " " + time(p.end - p.start)).join("") +
                (attempt.note ? "; " + attempt.note : ""));
            }
          }
          return box;
        }
        function go(item) {
          for (let one = item.parent; one; one = one.parent) one.isOpen = true;
          if (!item.hits) {
            search.value = "";
            id("critical").checked = false;
          }
          if (item.place < 0) filter();
          view.scrollTo({ top: topOf(item) - view.clientHeight / 2, behavior: isStill.matches ? "auto" : "smooth" });
          focus(item, false);
        }
        // - scrolls: whether to scroll the row into view at once.
        function focus(item, scrolls = true) {
          if (current && current.element) current.element.firstChild.tabIndex = -1;
          current = item;
          if (scrolls) {
            const y = topOf(item) + axisHeight;
            if (y < view.scrollTop + axisHeight) view.scrollTop = y - axisHeight;
            if (y + height > view.scrollTop + view.clientHeight) view.scrollTop = y + height - view.clientHeight + 12;
          }
          render();
          item.element.firstChild.tabIndex = 0;
          item.element.firstChild.focus({ preventScroll: true });
        }

        // Lines between rows

        const edges = [];
        for (const row of rows) if (row.isCritical) {
          for (const other of row.dependencies) if (rows[other].isCritical) edges.push([rows[other], row]);
        }
        function lines() {
          const links = id("links"), parts = { critical: [], before: [], after: [] };
          const low = view.scrollTop - 500, high = view.scrollTop + view.clientHeight + 500;
          const x = ms => (gutter + before + ms / total * trackWidth()).toFixed(1);
          const y = item => Math.min(high, Math.max(low, axisHeight + topOf(item) + (isNarrow.matches ? 34 : height / 2)));
          const line = (from, to, name) => {
            const one = shownFor(from.item), other = shownFor(to.item);
            if (!one || !other || one === other || parts[name].length > 400) return;
            const [first, last] = [y(one), y(other)];
            // Both rows are outside the view, on the same side.
            if (first === last && (first === low || first === high)) return;
            const end = to.started === undefined ? to.end : to.started;
            parts[name].push(`M${x(Math.min(from.end, end))} ${first}V${last}H${x(end)}`);
          };
          for (const [from, to] of edges) line(from, to, "critical");
          for (const element of list.querySelectorAll(".linked")) element.classList.remove("linked");
          const row = hovered && hovered.row;
          if (row) {
            for (const other of row.dependencies) line(rows[other], row, "before");
            for (const other of row.dependents) line(row, rows[other], "after");
            const near = new Set([...row.dependencies, ...row.dependents].map(other => shownFor(rows[other].item)));
            for (const element of list.children) if (near.has(element.item)) element.classList.add("linked");
          }
          links.replaceChildren();
          for (const name in parts) if (parts[name].length) draw("path", links, { class: name, d: parts[name].join("") });
        }
        function hover(item) {
          if (item === hovered) return;
          hovered = item;
          lines();
        }

        // Time axis and zoom

        const trackWidth = () => Math.max(1, (view.clientWidth - gutter) * zoom - before - behind);
        let lastTicks = "";
        function ticks() {
          const rough = total / Math.max(1, trackWidth() / 68), size = 10 ** Math.floor(Math.log10(rough));
          const step = [1, 2, 5, 10].map(n => n * size).find(n => n >= rough);
          const at = x => x / trackWidth() * total / step;
          const first = Math.max(0, Math.floor(at(view.scrollLeft - before)) - 1);
          const last = Math.min(Math.ceil(total / step) - 1, Math.ceil(at(view.scrollLeft + view.clientWidth)) + 1);
          const key = [step, first, last, gutter].join();
          if (key === lastTicks) return;
          lastTicks = key;
          const axis = id("axis").lastElementChild, grid = id("grid");
          axis.replaceChildren();
          grid.replaceChildren();
          for (let n = first; n <= last; n++) {
            make("i", grid).style.left = share(n * step);
            if (n * step < total - step * 0.5 || n === 0) make("span", axis, time(n * step, step)).style.left = share(n * step);
          }
        }
        // Zooms around a position in the view from 0 to 1. Without a position, zooms around the focused row.
        function setZoom(value, at) {
          const width = view.clientWidth - gutter, row = list.contains(document.activeElement) && current ? current.row : null;
          const middle = row && (row.started === undefined ? row.end : (row.started + row.end) / 2) / total * width;
          const place = at === undefined && row ? middle : (view.scrollLeft + (at ?? 0.5) * width) / zoom;
          zoom = Math.min(400, Math.max(1, value));
          sheet.style.width = gutter + width * zoom + "px";
          sheet.style.setProperty("--shown", view.clientWidth + "px");
          view.scrollLeft = place * zoom - (at ?? 0.5) * width;
          // The rows are drawn again, because the room for the reasons has changed.
          clear();
          render();
        }
        // Gives the names the room that they need, up to two fifths of the width.
        function layOut() {
          height = isNarrow.matches ? 46 : 26;
          const width = item => {
            const [name, more] = nameOf(item);
            return widthOf(more ? name + ", " + more : name, 14) * 1.04 + 14 * item.depth + (item.children.length ? 18 : 0) +
              (item.row && item.row.priority ? widthOf(item.row.priority, 11) + 18 : 0);
          };
          const longest = seen.slice(0, 300).reduce((most, item) => Math.max(most, width(item)), 0);
          gutter = isNarrow.matches ? 0 : Math.round(Math.min(Math.max(200, longest + 118), 520, view.clientWidth * 0.4));
          document.documentElement.style.setProperty("--gutter", gutter + "px");
          setZoom(zoom);
          paint();
        }
        function paint() {
          overview.hidden = rows.length < 60;
          if (overview.hidden) return;
          const scale = devicePixelRatio || 1, context = overview.getContext("2d");
          const width = overview.width = overview.clientWidth * scale, height = overview.height = 56 * scale;
          const style = getComputedStyle(document.documentElement);
          const colors = { wait: style.getPropertyValue("--edge"), slot: style.getPropertyValue("--firstByte"),
            bad: style.getPropertyValue("--bad") };
          // With many rows, several share a place. Drawing each takes far longer than comparing places.
          const thick = Math.max(1, Math.ceil(height / rows.length));
          let last = "";
          const fill = (start, end, top) => {
            const left = Math.floor(start / total * width), long = Math.max(1, Math.ceil(end / total * width) - left);
            const place = left + " " + long + " " + Math.floor(top);
            if (place !== last) context.fillRect(left, Math.floor(top), long, thick);
            last = place;
          };
          // Drawing one colour after another is several times as fast.
          context.fillStyle = colors.wait;
          rows.forEach((row, index) => fill(row.added, row.end, index / rows.length * height));
          for (const name of ["slot", "bad"]) {
            context.fillStyle = colors[name];
            rows.forEach((row, index) => {
              if (/ailed/.test(row.outcome) !== (name === "bad")) return;
              for (const slot of row.slots) fill(slot.start, slot.end, index / rows.length * height);
            });
          }
        }

        // Pointer and keys

        const itemOf = event => {
          const element = event.target.closest("#list > li");
          return element ? element.item : null;
        };
        list.addEventListener("click", event => {
          const item = itemOf(event);
          if (!item || !event.target.closest(".row")) return;
          focus(item);
          if (item.row && !event.target.closest(".twisty")) toggle(item); else fold(item, !item.isShownOpen);
        });
        list.addEventListener("pointerover", event => hover(itemOf(event)));
        list.addEventListener("pointerleave", () => hover(list.contains(document.activeElement) ? current : null));
        list.addEventListener("focusin", event => hover(itemOf(event)));
        list.addEventListener("keydown", event => {
          const item = itemOf(event), page = Math.max(1, Math.floor(view.clientHeight / height) - 2);
          if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
          const next = { ArrowDown: item.place + 1, ArrowUp: item.place - 1, Home: 0, End: seen.length - 1,
            PageDown: item.place + page, PageUp: item.place - page }[event.key];
          if (next !== undefined) focus(seen[Math.min(seen.length - 1, Math.max(0, next))]);
          else if (event.key === "ArrowRight" && item.children.length && !item.isShownOpen) fold(item, true);
          else if (event.key === "ArrowLeft" && item.isShownOpen) fold(item, false);
          else if (event.key === "ArrowRight") view.scrollLeft += 80;
          else if (event.key === "ArrowLeft") view.scrollLeft -= 80;
          else if (event.key === "Escape") toggle(item, false), focus(item);
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
          const place = Math.max(0, event.clientX - gutter) / (view.clientWidth - gutter);
          setZoom(zoom * Math.exp(-event.deltaY / 200), place);
        }, { passive: false });
        let isDue = false;
        view.addEventListener("scroll", () => {
          if (isDue) return;
          isDue = true;
          requestAnimationFrame(() => {
            isDue = false;
            render();
          });
        }, { passive: true });
        id("in").onclick = () => setZoom(zoom * 1.5);
        id("out").onclick = () => setZoom(zoom / 1.5);
        id("fit").onclick = () => setZoom(1);
        id("unfold").onclick = () => foldAll(id("unfold").getAttribute("aria-pressed") !== "true");
        id("unfold").hidden = !hasFolds;
        search.oninput = id("critical").onchange = () => {
          view.scrollTop = 0;
          filter();
        };
        overview.onclick = event => {
          const row = rows[Math.floor(event.offsetY / overview.clientHeight * rows.length)];
          if (row) go(row.item);
        };

        // The legend lists only what the page shows.
        const kinds = new Set();
        for (const row of rows) {
          kinds.add(row.outcome);
          if (row.isCritical) kinds.add("path");
          for (const wait of row.waits) kinds.add(wait.kind);
          for (const answer of row.cache) kinds.add(answer.miss ? "miss" : "hit");
          for (const attempt of row.attempts) {
            // An attempt with phases shows this colour, too, because its end is reported after its last byte.
            kinds.add("attempt");
            if (attempt.error || attempt.status >= 400) kinds.add("broken");
            for (const phase of attempt.phases ?? none) kinds.add(phase.kind);
          }
        }
        if (hasFolds) kinds.add("profile");
        for (const entry of document.querySelectorAll("#legend [data-kind]")) entry.hidden = !kinds.has(entry.dataset.kind);
        id("legend").open = innerWidth > 640 && innerHeight >= 560;

        filter();
        new ResizeObserver(layOut).observe(view);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
        // The strings to search are prepared here, so that the first letter of a filter causes no delay.
        search.addEventListener("focus", () => rows.forEach(textOf), { once: true });
        """#
}
