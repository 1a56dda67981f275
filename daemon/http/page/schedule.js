// When work is done: gathered, and in pieces that leave the browser free between them.

// Calls `work` once, `delay` ms after the first of any number of calls.
export function later(work, delay) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      work();
    }, delay);
  };
}

// Calls work(name) for each name that it is called with, once, in a task of its own, from the next frame on.
export function inTasks(work) {
  const asked = new Set();
  let working = false;
  return (...names) => {
    for (const name of names) asked.add(name);
    if (working) return;
    working = true;
    const next = () => {
      const [name] = asked;
      if (name === undefined) {
        working = false;
        return;
      }
      asked.delete(name);
      setTimeout(next, 0);
      work(name);
    };
    // A page that is hidden, or is hidden before then, has no next frame.
    let begun = false;
    const begin = () => {
      if (begun) return;
      begun = true;
      next();
    };
    requestAnimationFrame(begin);
    setTimeout(begin, 100);
  };
}
