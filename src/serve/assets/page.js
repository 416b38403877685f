/* Makes the page live: one stream of events; what it tells of is fetched as the server renders it, and put where it differs. Without this
 * file the page is the same, as of when it was loaded. */
'use strict';
(() => {
  const body = document.body, live = document.getElementById('live');
  const follows = body.dataset.at !== undefined;
  let source = null, waits = false, last = body.dataset.at, log = null;

  const say = text => { if (live && live.textContent !== text) live.textContent = text; };

  /* --- what differs is put in place; what is open stays open, what is marked stays marked --- */
  const keep = (from, to) => {
    from.querySelectorAll('details[id]').forEach(d => { const e = to.querySelector('#' + CSS.escape(d.id)); if (e) e.open = d.open; });
    from.querySelectorAll('input[type=checkbox]').forEach(c => {
      const e = [...to.querySelectorAll('input[type=checkbox]')].find(o => o.value === c.value && o.name === c.name);
      if (e) e.checked = c.checked;
    });
  };
  const place = text => {
    const page = new DOMParser().parseFromString(text, 'text/html');
    document.querySelectorAll('[data-live]').forEach(old => {
      const fresh = page.getElementById(old.id);
      if (!fresh || fresh.innerHTML === old.dataset.was) return;
      const was = fresh.innerHTML, at = document.activeElement, href = old.contains(at) ? at.getAttribute('href') || at.id : null;
      keep(old, fresh);
      old.replaceChildren(...fresh.childNodes);
      old.dataset.was = was;
      enhance(old);
      if (href) {
        const e = [...old.querySelectorAll('a[href],[id]')].find(o => o.getAttribute('href') === href || o.id === href);
        if (e) e.focus({ preventScroll: true });
      }
    });
    if (page.title) document.title = page.title;
  };
  /* Two paces: parts that are quick are asked for by themselves as soon as something happened, the whole page a hundred times as seldom as it takes
   * long: so that who looks costs the server no more than a hundredth of a core. */
  const pace = (parts, times, least) => ({ parts, times, least, timer: 0, busy: false, again: false, last: -1e9, took: 0 });
  const quick = pace(() => [...document.querySelectorAll('[data-quick]')].map(e => e.id), 20, 200);
  const whole = pace(() => null, 100, 500);
  const [nav] = performance.getEntriesByType('navigation');
  whole.last = performance.now();
  whole.took = nav ? nav.responseStart - nav.requestStart : 0;
  const fetchPage = async p => {
    const ids = p.parts(), url = new URL(location.href);
    p.timer = 0;
    p.busy = true;
    p.last = performance.now();
    if (ids) url.searchParams.set('parts', ids.join(','));
    try {
      const r = await fetch(url, { credentials: 'same-origin', cache: 'no-store' });
      p.took = performance.now() - p.last;
      if (r.ok) { place(await r.text()); say('live'); }
      else if (r.status === 401) location.reload();
      else say('the server answered ' + r.status);
    } catch (e) { say('no answer; trying again'); }
    p.busy = false;
    if (p.again) { p.again = false; soon(p); }
  };
  const soon = p => {
    if (document.hidden) { waits = true; return; }
    if (p.busy) { p.again = true; return; }
    if (p.timer || (p === quick && !p.parts().length)) return;
    const since = performance.now() - p.last;
    p.timer = setTimeout(fetchPage, Math.max(0, p.least - since, p.took * p.times - since), p);
  };

  /* --- a trial's log, followed --- */
  const more = async () => {
    if (!log || log.busy) { if (log) log.again = true; return; }
    log.busy = true;
    try {
      const r = await fetch(log.url + '?from=' + log.size, { cache: 'no-store' });
      const size = Number(r.headers.get('X-Log-Size')), from = Number(r.headers.get('X-Log-From'));
      if (r.ok) {
        const text = await r.text(), end = log.pre.scrollTop + log.pre.clientHeight >= log.pre.scrollHeight - 8;
        if (from !== log.size) log.pre.textContent = '';
        log.pre.append(text);
        if (log.pre.textContent.length > 400000) log.pre.textContent = log.pre.textContent.slice(-200000);
        log.size = size;
        if (end) log.pre.scrollTop = log.pre.scrollHeight;
      }
    } catch (e) { /* the next event asks again */ }
    log.busy = false;
    if (log.again) { log.again = false; more(); }
  };

  /* --- the stream --- */
  const listen = () => {
    const q = new URLSearchParams();
    if (body.dataset.study) q.set('study', body.dataset.study);
    if (body.dataset.trial) q.set('trial', body.dataset.trial);
    if (last) q.set('after', last);
    source = new EventSource('/events?' + q);
    const note = e => { if (e.lastEventId) last = e.lastEventId; };
    source.onopen = () => say('live');
    source.onerror = () => {
      say('no connection; trying again');
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    };
    for (const name of ['news', 'hello', 'reset']) source.addEventListener(name, e => { note(e); soon(quick); soon(whole); });
    source.addEventListener('changed', () => soon(whole));
    source.addEventListener('log', more);
  };
  document.addEventListener('visibilitychange', () => { if (!document.hidden && waits) { waits = false; soon(quick); soon(whole); } });

  /* --- tables: sorted by their heads, filtered by a word --- */
  const value = (row, i) => {
    const c = row.cells[i], text = c ? c.dataset.v ?? c.textContent.trim() : '', n = Number(text);
    return text !== '' && !Number.isNaN(n) ? n : text;
  };
  const sort = (table, i, down) => {
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i);
      const d = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === 'number' ? -1 : 1;
      return down && typeof x === typeof y ? -d : d;
    });
    table.tBodies[0].append(...rows);
  };
  const enhance = root => root.querySelectorAll('table[data-sort]').forEach(table => {
    [...table.tHead.rows[0].cells].forEach((th, i) => {
      if (th.querySelector('a,input') || !th.textContent.trim()) return;
      const b = document.createElement('button');
      b.type = 'button';
      b.append(...th.childNodes);
      b.addEventListener('click', () => {
        const down = th.getAttribute('aria-sort') === 'ascending';
        [...th.parentNode.cells].forEach(o => o.removeAttribute('aria-sort'));
        th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        sort(table, i, down);
      });
      th.append(b);
    });
    if (table.tBodies[0].rows.length < 8) return;
    const box = document.createElement('input');
    box.type = 'search';
    box.placeholder = 'filter';
    box.setAttribute('aria-label', 'show rows that hold');
    box.addEventListener('input', () => {
      const words = box.value.toLowerCase().split(/\s+/);
      for (const r of table.tBodies[0].rows) r.hidden = !words.every(w => r.textContent.toLowerCase().includes(w));
    });
    table.before(box);
  });

  document.querySelectorAll('[data-live]').forEach(e => { e.dataset.was = e.innerHTML; });
  enhance(document);
  const pre = document.querySelector('pre[data-log]');
  if (pre) { log = { pre, url: pre.dataset.log, size: Number(pre.dataset.size) }; pre.scrollTop = pre.scrollHeight; }
  if (follows && window.EventSource) listen();
})();
