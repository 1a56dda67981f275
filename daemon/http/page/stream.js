// Follows /api/v1/events, over restarts of the daemon.

// The events of a text of server-sent events, and the last part that has no end yet. Pure.
export function framesOf(text) {
  const frames = [];
  let from = 0;
  for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', from)) {
    const frame = {id: '', data: ''};
    for (const line of text.slice(from, end).split('\n')) {
      if (line.startsWith('id: ')) frame.id = line.slice(4);
      else if (line.startsWith('data: ')) frame.data = line.slice(6);
    }
    from = end + 2;
    if (frame.data !== '') frames.push(frame);
  }
  return {frames, rest: text.slice(from)};
}

const BACK_MIN_MS = 250,
  BACK_MAX_MS = 5000;
// The daemon shows a sign of life each 15 s.
const SILENT_MS = 40000;

const shown = () =>
  new Promise((resolve) => {
    if (!document.hidden) return resolve();
    document.addEventListener('visibilitychange', () => shown().then(resolve), {once: true});
  });

// A browser has six connections to a daemon for all its tabs, and a daemon has 16 streams for all browsers. So a tab that nobody sees has
// none, and resumes when it is seen.
//
// Calls onEvents(events) for all that come, and onLife(alive, text) when the stream begins and ends; never ends. EventSource would wait
// for seconds before it tries again, and gives up after an answer that is an error.
export async function follow(url, onEvents, onLife) {
  let last = '',
    back = BACK_MIN_MS;
  for (;;) {
    await shown();
    const control = new AbortController();
    const hide = () => {
      if (document.hidden) control.abort();
    };
    document.addEventListener('visibilitychange', hide);
    let silence = 0;
    const note_alive = () => {
      clearTimeout(silence);
      silence = setTimeout(() => control.abort(), SILENT_MS);
    };
    let why = 'the connection ended';
    try {
      note_alive();
      const response = await fetch(url, {headers: last === '' ? {} : {'Last-Event-ID': last}, signal: control.signal, cache: 'no-store'});
      if (!response.ok) throw new Error((await response.text()).trim());
      onLife(true, '');
      back = BACK_MIN_MS;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const {value, done} = await reader.read();
        if (done) break;
        note_alive();
        const parsed = framesOf(rest + value);
        rest = parsed.rest;
        if (parsed.frames.length === 0) continue;
        last = parsed.frames.at(-1).id;
        onEvents(parsed.frames.map((frame) => JSON.parse(frame.data)));
      }
    } catch (error) {
      why = error.message;
    }
    clearTimeout(silence);
    document.removeEventListener('visibilitychange', hide);
    if (document.hidden) continue;
    onLife(false, why);
    await new Promise((resolve) => setTimeout(resolve, back));
    back = Math.min(BACK_MAX_MS, back * 2);
  }
}
