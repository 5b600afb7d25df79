import type { UploadedFile } from './body.ts';
import type { Events } from './events.ts';
import type { Gateway } from './gateway.ts';
import type { Privileged } from './intents.ts';
import type { Interactions } from './interactions.ts';
import type { Call, Ping, StandingMessage, Typing, Wire } from './types.ts';
import type { Renderer } from './wire.ts';
import type { World } from './world.ts';

/** The state that the REST API's calls work on. */
export type Platform = {
  readonly world: World;
  readonly gateway: Gateway;
  readonly events: Events;
  readonly render: Renderer;
  readonly interactions: Interactions;
  readonly now: () => number;
  readonly privileged: Privileged;
  readonly typing: Typing[];
  readonly pings: Ping[];
  /** Application commands by scope: `global` or a guild's id. */
  readonly commands: Map<string, Wire[]>;
  /** How long `enforce_nonce` remembers a nonce. */
  readonly nonceWindowMs: number;
  readonly gatewayUrl: () => string;
  /** How many of the day's identifies are left. */
  readonly identifiesLeft: () => number;
};

export type Request = {
  readonly platform: Platform;
  /** The ids in the path. */
  readonly ids: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Wire;
  /** The body if it is a list. */
  readonly list: readonly unknown[];
  readonly files: readonly UploadedFile[];
  readonly call: Call;
};

export type Answer = { readonly status: number; readonly body?: unknown };
export type Handler = (request: Request) => Answer;
export type Routes = Readonly<Record<string, Handler>>;

export const ok = (body: unknown): Answer => ({ status: 200, body });
export const noContent: Answer = { status: 204 };

export const idOf = (request: Request, name: string): string => request.ids[name] ?? '';

/** Returns a message as this application may read it over REST. */
export const shown = ({ render, privileged }: Platform, message: StandingMessage): Wire =>
  render.message(message, privileged.messageContent);
