import { type ApiError, refuse } from './errors.ts';
import { snowflakeExpected } from './mentions.ts';
import type { Handler } from './platform.ts';
import { accountRoutes } from './routes-account.ts';
import { channelRoutes } from './routes-channels.ts';
import { commandRoutes } from './routes-commands.ts';
import { interactionRoutes } from './routes-interactions.ts';
import { messageRoutes } from './routes-messages.ts';
import { isSnowflake } from './snowflake.ts';

export type Match = {
  /** As in the journal: `GET /channels/:channel`. */
  readonly route: string;
  readonly ids: Readonly<Record<string, string>>;
  readonly handler: Handler;
  /** Interactions carry their own token and don't count towards the global rate. */
  readonly isInteraction: boolean;
  /** The id that the call's rate bucket belongs to. */
  readonly major: string;
};

const all = Object.entries({
  ...accountRoutes,
  ...messageRoutes,
  ...channelRoutes,
  ...commandRoutes,
  ...interactionRoutes,
}).map(([route, handler]) => {
  const [method = '', pattern = ''] = route.split(' ');
  const source = pattern.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)');
  const isLiteral = !pattern.includes(':');
  return { route, method, path: new RegExp(`^${source}$`), handler, isLiteral };
});
// A path without ids wins: /users/@me before /users/:user.
const routes = all.toSorted((a, b) => Number(b.isLiteral) - Number(a.isLiteral));

const free = new Set(['emoji', 'token']);

/** Finds the route of a call. Returns a 404 or 405, or a 400 for invalid ids. */
export function matchRoute(method: string, path: string): Match | ApiError {
  const here = routes.filter((one) => one.path.test(path));
  const route = here.find((one) => one.method === method);
  if (route === undefined) return here.length > 0 ? refuse('methodNotAllowed') : refuse('notFound');
  const ids: Record<string, string> = {};
  for (const [name, value] of Object.entries(route.path.exec(path)?.groups ?? {})) ids[name] = decoded(value);
  for (const [name, value] of Object.entries(ids)) {
    const isOriginal = name === 'message' && value === '@original' && route.route.includes('/webhooks/');
    if (!free.has(name) && !isOriginal && !isSnowflake(value)) return snowflakeExpected(`${name}_id`, value);
  }
  const isInteraction = path.startsWith('/interactions/') || path.startsWith('/webhooks/');
  const major = ids.channel ?? ids.guild ?? ids.token ?? '';
  return { route: route.route, ids, handler: route.handler, isInteraction, major };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
