/**
 * The socket to Parley: opens it, reopens it when it closes, asks for what was missed, and resends
 * every stored message until it is acknowledged.
 */
const firstDelayMs = 400;
const maxDelayMs = 8000;
/** This long without an acknowledgement, or without any frame from the gateway, the socket only looks open. */
const ackPatienceMs = 10_000;
const silenceMs = 75_000;

/**
 * @param {{ url: string, conversation: string, events: readonly string[], outbox: any,
 *   resumeFrom: () => { after: number, of?: string },
 *   onFrame: (frame: any) => void, onState: (state: 'connecting' | 'open' | 'lost') => void }} options
 */
export function createConnection(options) {
  let socket;
  let delayMs = firstDelayMs;
  let retry;
  let isClosed = false;
  /** Time of the socket's last frame; unlimited before the first one, which contains all messages and may take long. */
  let heardAt;
  const sentAt = new Map();

  const open = () => {
    clearTimeout(retry);
    options.onState('connecting');
    const current = new WebSocket(options.url);
    socket = current;
    heardAt = Number.POSITIVE_INFINITY;
    sentAt.clear();
    current.onopen = () => {
      const { after, of } = options.resumeFrom();
      write({
        ...{ type: 'hello', conversation: options.conversation, events: options.events },
        ...(after > 0 ? { after, of } : {}),
      });
      for (const { frame } of options.outbox.list()) write(frame);
      options.onState('open');
    };
    current.onmessage = (event) => receive(JSON.parse(event.data));
    current.onclose = () => {
      if (current === socket) lost();
    };
  };

  const lost = () => {
    socket = undefined;
    if (isClosed) return;
    options.onState('lost');
    retry = setTimeout(open, delayMs * (0.75 + Math.random() / 2));
    delayMs = Math.min(delayMs * 2, maxDelayMs);
  };

  const write = (frame) => {
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (frame.id !== undefined) sentAt.set(frame.id, Date.now());
    socket.send(JSON.stringify(frame));
  };

  const receive = (frame) => {
    heardAt = Date.now();
    if (frame.type === 'items') delayMs = firstDelayMs;
    const isSettled = frame.type === 'ack' || (frame.type === 'problem' && !frame.retry);
    if (isSettled && frame.id !== undefined) {
      sentAt.delete(frame.id);
      options.outbox.remove(frame.id);
    }
    options.onFrame(frame);
  };

  const reconnectNow = () => {
    if (isClosed || socket !== undefined) return;
    delayMs = firstDelayMs;
    open();
  };

  const watchdog = setInterval(() => {
    const patienceEnds = Math.min(
      heardAt + silenceMs,
      ...[...sentAt.values()].map((at) => at + ackPatienceMs),
    );
    if (socket === undefined || Date.now() < patienceEnds) return;
    const stuck = socket;
    socket = undefined;
    stuck.close();
    lost();
  }, 1000);

  window.addEventListener('online', reconnectNow);
  document.addEventListener('visibilitychange', reconnectNow);
  open();

  return {
    /** Stores the frame, then sends it, and again until it is acknowledged. */
    submit(entry) {
      options.outbox.put(entry);
      write(entry.frame);
    },
    close() {
      isClosed = true;
      clearTimeout(retry);
      clearInterval(watchdog);
      window.removeEventListener('online', reconnectNow);
      document.removeEventListener('visibilitychange', reconnectNow);
      socket?.close();
    },
  };
}
