// A page of another origin: it tries every way in which a page can reach the gateway, and writes down what it got.
(async () => {
  const target = new URLSearchParams(location.search).get('target');
  const patienceMs = 4000;

  const byFetch = async (path, init) => {
    const name = `fetch ${path} ${init.mode} ${init.method ?? 'GET'}`;
    try {
      const answer = await fetch(target + path, { credentials: 'include', ...init });
      const body = await answer.text();
      return `${name}: ${body.length === 0 ? 'nothing' : body}`;
    } catch {
      return `${name}: nothing`;
    }
  };
  const byElement = (name, path) =>
    new Promise((resolve) => {
      const element = document.createElement(name);
      element.onload = () => resolve(`${name} ${path}: loaded`);
      element.onerror = () => resolve(`${name} ${path}: nothing`);
      element.src = target + path;
      document.body.append(element);
    });
  // A refused frame loads the browser's own error page, which has an opaque origin and no frames inside.
  const byFrame = (path) =>
    new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = () =>
        resolve(`frame ${path}: ${frame.contentWindow.length === 0 ? 'nothing' : 'loaded'}`);
      frame.src = target + path;
      document.body.append(frame);
    });
  const bySocket = () =>
    new Promise((resolve) => {
      const socket = new WebSocket(`${target.replace('http', 'ws')}/channels/web/chat`);
      socket.onopen = () => resolve('socket: open');
      socket.onerror = () => resolve('socket: nothing');
    });
  const byEvents = () =>
    new Promise((resolve) => {
      const source = new EventSource(`${target}/api/status`, { withCredentials: true });
      source.onopen = () => resolve('events: open');
      source.onerror = () => resolve('events: nothing');
    });
  const byForm = (path) =>
    new Promise((resolve) => {
      const form = document.createElement('form');
      const frame = document.createElement('iframe');
      frame.name = 'answer';
      frame.onload = () => resolve('form: nothing');
      form.method = 'post';
      form.action = target + path;
      form.target = 'answer';
      document.body.append(frame, form);
      form.submit();
    });

  const post = { method: 'POST', body: '{}' };
  const own = { 'x-parley': '1', 'content-type': 'application/json' };
  const tries = [
    byFetch('/api/status', { mode: 'cors' }),
    byFetch('/api/status', { mode: 'no-cors' }),
    byFetch('/metrics', { mode: 'no-cors' }),
    byFetch('/api/sign-out', { mode: 'no-cors', ...post }),
    byFetch('/api/sign-out', { mode: 'cors', ...post, headers: own }),
    byElement('img', '/page/icon.svg'),
    byElement('script', '/api/status'),
    byFrame('/'),
    bySocket(),
    byEvents(),
    byForm('/api/sign-out'),
  ];
  const late = new Promise((resolve) => setTimeout(() => resolve('nothing'), patienceMs));
  const lines = await Promise.all(tries.map((attempt) => Promise.race([attempt, late])));
  const result = document.getElementById('result');
  result.textContent = lines.join('\n');
  result.dataset.done = 'yes';
})();
