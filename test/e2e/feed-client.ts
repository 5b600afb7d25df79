/** Followers of a feed: an independent EventSource, and a WebSocket. Each assembles what it receives, as the page does. */
import { Agent, EventSource } from 'undici';
import WebSocket from 'ws';
import { emptyConversation, reduce } from '../../src/client/conversation.js';
import type { Conversation } from '../../src/client/conversation-types.ts';
import { type FeedFrame, feedFrameSchema } from '../../src/contracts/feed-frame.ts';

export type Follower = {
  readonly frames: readonly FeedFrame[];
  /** What the follower has assembled. */
  conversation(): Conversation;
  /** The ids of runs whose end it was told, each time. */
  ends(): readonly string[];
  isOpen(): boolean;
  /** Whether it has given up for good. */
  isClosed(): boolean;
  /** The id of the last frame that had one. */
  lastId(): string | undefined;
  close(): void;
};

class Assembly {
  readonly frames: FeedFrame[] = [];
  conversation = emptyConversation;

  add(json: string): void {
    const frame = feedFrameSchema.parse(JSON.parse(json));
    this.frames.push(frame);
    this.conversation = reduce(this.conversation, { kind: 'frame', frame });
  }

  ends(): readonly string[] {
    return this.frames.flatMap((frame) =>
      frame.type === 'event' && frame.event.kind === 'run' && frame.event.state === 'ended'
        ? [frame.event.runId]
        : [],
    );
  }

  lastId(): string | undefined {
    return this.frames.flatMap((frame) => ('id' in frame && frame.id !== undefined ? [frame.id] : [])).at(-1);
  }

  followed(state: () => number, close: () => void): Follower {
    return {
      frames: this.frames,
      conversation: () => this.conversation,
      ends: () => this.ends(),
      lastId: () => this.lastId(),
      isOpen: () => state() === 1,
      isClosed: () => state() > 1,
      close,
    };
  }
}

/** Opens an EventSource, which reconnects on its own; it can't send a header, so its connections do. */
export function followEvents(address: string, token: string): Follower {
  const assembly = new Assembly();
  const agent = new Agent().compose((dispatch) => (options, handler) => {
    const headers = { ...(options.headers as Record<string, string>), authorization: `Bearer ${token}` };
    return dispatch({ ...options, headers }, handler);
  });
  const source = new EventSource(address, { node: { dispatcher: agent } });
  source.onmessage = ({ data }) => assembly.add(String(data));
  const close = () => {
    source.close();
    void agent.destroy();
  };
  return assembly.followed(() => source.readyState, close);
}

/** Opens a WebSocket; it doesn't reconnect. */
export function followSocket(address: string, token: string): Follower {
  const assembly = new Assembly();
  const socket = new WebSocket(address.replace(/^http/, 'ws'), {
    headers: { authorization: `Bearer ${token}` },
  });
  socket.on('message', (data) => assembly.add(String(data)));
  socket.on('error', () => undefined);
  return assembly.followed(
    () => socket.readyState,
    () => socket.terminate(),
  );
}
