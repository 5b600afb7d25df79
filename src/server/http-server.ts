/**
 * The one HTTP server: page, status, health and the channels' routes. Every request passes the same
 * checks in the same order (Host, Origin, form, identity), and a route without an `access` requires a sign-in.
 */

import type { IncomingMessage } from 'node:http';
import { type AddressInfo, BlockList, isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import cookiePlugin from '@fastify/cookie';
import websocketPlugin from '@fastify/websocket';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastify from 'fastify';
import { maxFrameBytes } from '#channel-kit/client-frames.ts';
import { isContainer } from '#channel-kit/own-commands.ts';
import { systemClock, untilStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { RouteHost } from '#contracts/route-host.ts';
import type { GatewayDeps } from '../operations/list.ts';
import type { SignInLinks } from '../operations/sign-ins.ts';
import type { ProgramCalls } from '../service/program-calls.ts';
import { findLockout, lockOut } from '../store/sign-ins/sign-ins.ts';
import { mountAcp } from './acp/mount.ts';
import { allowedOrigins, isWildcard, pageAddress } from './allowed-origins.ts';
import { serveOperations } from './api-call.ts';
import { describeApi } from './api-document.ts';
import { createAttemptLimiter, type Lockouts } from './attempt-limiter.ts';
import { createChannelRoutes } from './channel-routes.ts';
import {
  type ConnectionLimits,
  connectionLimits,
  limitConnections,
  serverOptionsOf,
} from './connection-limits.ts';
import { type FeedRouteDeps, mountAbsentFeed, mountFeed, type OpenFeeds } from './feed-routes.ts';
import { mountFiles } from './file-route.ts';
import { createIdentityCheck } from './identity.ts';
import { watchRequests } from './open-requests.ts';
import { mountOpenAi } from './openai/routes.ts';
import { servePage } from './page-files.ts';
import { mountPluginRoutes, type PluginRoutes } from './plugin-routes.ts';
import { type Readiness, withinPatience } from './readiness.ts';
import { mountRequestAuth, refuse } from './request-auth.ts';
import { asksForSocket, sourceOf } from './request-guard.ts';
import { mountSignIn, mountStatus } from './sign-in-routes.ts';
import { createSignInCodes, createSignIns, type SignInStore, type SignIns } from './sign-ins.ts';
import { createTokenCheck } from './tokens.ts';
import { mountWebhooks, type WebhookRouteDeps } from './webhooks/routes.ts';

export type HttpServerDeps = {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** The owner's token, at least 128 bits. */
  readonly token: string;
  /** Host values to answer to, besides the loopback names and, on a non-loopback `host`, the machine's addresses. */
  readonly allowedHosts?: readonly string[];
  /** Proxies whose X-Forwarded-For and -Proto are trusted: addresses and CIDR ranges. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Stores conversations, sign-ins and lockouts. */
  readonly store: SignInStore;
  readonly limits?: ConnectionLimits;
  /** Status for a webhook that no channel has registered. Default: 404. */
  readonly absentWebhookStatus?: 404 | 503;
  /** Largest file that page and programs may send, bytes. Default: none may be sent. */
  readonly maxUploadBytes?: number;
  /** Where files that were sent are kept. Their route is absent without it. */
  readonly mediaDir?: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Parley's version, for the description of the API. */
  readonly version?: string;
  /** Routes of plugins; absent: none. */
  readonly plugins?: PluginRoutes;
  readiness(): Promise<Readiness>;
  status: GatewayDeps['status'];
  /** Dependencies of the API's operations, besides those that the server has. */
  readonly operations: Omit<GatewayDeps, 'store' | 'log' | 'status' | 'signIns' | 'issueLinks' | 'cutToken'>;
  /** Addresses at which other systems report something; absent: none. */
  readonly webhooks?: Pick<WebhookRouteDeps, 'hooks' | 'webhooks' | 'defaultAgent'>;
  /** Calls of programs in OpenAI's API; its routes are absent without them. */
  readonly programs?: ProgramCalls;
  /** The feeds of sessions; their route is absent without them. */
  readonly feeds?: Pick<FeedRouteDeps, 'feeds' | 'mainLane'>;
  /** The text of `/metrics`; the route is absent without it. */
  metrics?(): Promise<string>;
};

/** The page's server, with the channels' routes. */
export interface HttpServer {
  /** Returns the routes of one connection. `line`: see `connectionName`. */
  routesFor(line: string): RouteHost;
  /** Starts to answer. Throws ParleyError `config_invalid` when the address can't be used. */
  listen(): Promise<{ readonly url: string; readonly phoneUrl?: string }>;
  /** Creates a link that signs one browser in, once, within 15 minutes. Call it only after `listen`. */
  signInLink(): string;
  /** Closes every socket within a second, then the server. Safe to call twice. */
  close(): Promise<void>;
}

const bodyLimitBytes = 64 * 1024;
/** 128 bits take 32 characters as hexadecimal digits, 22 as base64. */
const minTokenLength = 22;

/** Creates the server; it doesn't listen yet. Throws `config_invalid` for a weak token. */
export function createHttpServer(deps: HttpServerDeps): HttpServer {
  checkToken(deps.token);
  const clock = deps.clock ?? systemClock;
  const codes = createSignInCodes(clock);
  const routes = createChannelRoutes(deps);
  const isProxy = trustedProxies(deps.trustedProxies ?? []);
  const limits = deps.limits ?? connectionLimits;
  const { keepAliveTimeout, ...http } = serverOptionsOf(limits);
  // Files take longest; everything else has its own limit, see `limitBodyTime`.
  const requestTimeout = limits.uploadMs;
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout,
    keepAliveTimeout,
    // Passed here too, because Node.js compares it with the head's timeout when it creates the server.
    http: { ...http, requestTimeout, shouldUpgradeCallback: ({ headers }) => asksForSocket(headers) },
    forceCloseConnections: true,
    trustProxy: isProxy,
    logger: false,
    // An address that can't be read reaches no hook.
    frameworkErrors: (error, _request, reply) =>
      void refuse(reply, { status: error.statusCode ?? 400, code: 'invalid_request' }),
    // A prototype key is refused, not dropped, because it is never sent by accident.
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  });
  limitConnections(app.server, { limits, isProxy });
  limitBodyTime(app, limits);
  const port = () => boundPort(app) ?? deps.port;
  const linkAt = (address: string, by?: string) => `${address}/signin?code=${codes.issue(by)}`;
  const signInLink = (by?: string) => linkAt(pageAddress(deps.host, port()), by);
  const phone = () => phoneAddress(deps.host, port());
  const links = (by: string | undefined): SignInLinks => {
    const address = phone();
    return { url: signInLink(by), ...(address !== undefined && { phoneUrl: linkAt(address, by) }) };
  };
  mountAll(app, deps, { clock, codes, routes, port, links });
  return {
    routesFor: routes.hostFor,
    listen: async () => {
      await listen(app, deps);
      const phoneUrl = phone();
      return { url: pageAddress(deps.host, port()), ...(phoneUrl !== undefined && { phoneUrl }) };
    },
    signInLink: () => signInLink(),
    close: async () => {
      await app.close();
    },
  };
}

/** Replaces the schema compilers: zod checks all input, so ajv and the like, 90 files, needn't even be loaded. */
function noSchemas(): never {
  throw new ParleyError('internal', 'A route was given a JSON Schema; check its input with zod instead.');
}

type Parts = {
  readonly clock: Clock;
  readonly codes: ReturnType<typeof createSignInCodes>;
  readonly routes: ReturnType<typeof createChannelRoutes>;
  readonly port: () => number;
  readonly links: (by: string | undefined) => SignInLinks;
};

function mountAll(app: FastifyInstance, deps: HttpServerDeps, parts: Parts): void {
  const { clock, routes } = parts;
  const { token, store, log } = deps;
  const limiter = createAttemptLimiter({ clock, lockouts: storedLockouts({ store, clock, log }) });
  const signIns = createSignIns({
    ...{ token, store, clock, log },
    inUse: () => new Set([...routes.sessionsInUse(), ...(feeds?.sessionsInUse() ?? [])]),
    onUse: () => watch.hurry(),
    onEnd: (session) => {
      routes.closeSockets({ session }, 'signed out');
      cut(session);
    },
  });
  /** Ends the open requests of a sign-in or token. */
  const cut = (id: string) => {
    feeds?.end(id);
    requests.end(id);
  };
  let feeds: OpenFeeds | undefined;
  const watch = watchSignIns(signIns, log);
  app.addHook('onListen', async () => watch.start());
  app.addHook('preClose', async () => watch.stop());
  const tokens = createTokenCheck({ store, clock, log });
  const identities = createIdentityCheck({ token, signIns, tokens, limiter });
  const whose = (request: FastifyRequest) => sourceOf(request.ip, request.socket.remoteAddress);
  // All ports of a host share its cookies, so the name contains the port.
  const cookieName = () => `parley-${parts.port()}`;

  app.register(cookiePlugin);
  registerSockets(app, log, () => {
    routes.closeSockets('all', 'going away');
    feeds?.close();
  });
  const identify = mountRequestAuth(app, {
    log,
    identities,
    cookieName,
    origins: () => originsFor(deps, parts.port()),
    sourceOf: whose,
  });
  const requests = watchRequests(app);
  describeApi(app, { version: deps.version, cookieName });
  app.register(async (scope) => {
    const { operations, status } = deps;
    const gateway = { ...operations, store, log, status, signIns, issueLinks: parts.links, cutToken: cut };
    serveOperations(scope, gateway, deps.maxUploadBytes ?? 0);
    mountSignIn(scope, { cookieName, codes: parts.codes, signIns, limiter, identities, sourceOf: whose });
    if (deps.feeds) feeds = mountFeed(scope, { ...deps.feeds, store, identify });
    else mountAbsentFeed(scope);
    mountOthers(scope, deps, { routes, clock, gateway });
  });
}

function mountOthers(
  scope: FastifyInstance,
  deps: HttpServerDeps,
  { routes, clock, gateway }: Pick<Parts, 'routes' | 'clock'> & { readonly gateway: GatewayDeps },
): void {
  const { programs, store, mediaDir, maxUploadBytes: maxImageBytes = 0, version = '' } = deps;
  mountStatus(scope, deps);
  if (programs) mountOpenAi(scope, { programs, maxImageBytes });
  if (programs) mountAcp(scope, { programs, gateway, version, maxImageBytes });
  if (deps.webhooks) mountWebhooks(scope, { ...deps.webhooks, log: deps.log, clock });
  servePage(scope);
  if (mediaDir !== undefined) mountFiles(scope, { store, mediaDir });
  routes.mount(scope);
  if (deps.plugins) mountPluginRoutes(scope, deps.plugins);
}

function originsFor({ allowedHosts = [], host }: HttpServerDeps, port: number) {
  return allowedOrigins({ port, configured: allowedHosts, own: () => ownAddresses(host) });
}

function registerSockets(app: FastifyInstance, log: Log, closeAll: () => void): void {
  app.register(websocketPlugin, {
    options: { maxPayload: maxFrameBytes },
    errorHandler: (error, socket) => {
      log.debug({ reason: error.message }, 'socket.failed');
      socket.terminate();
    },
    preClose: (done) => {
      closeAll();
      done();
    },
  });
}

async function listen(app: FastifyInstance, deps: HttpServerDeps): Promise<void> {
  try {
    await app.listen({ host: deps.host, port: deps.port });
  } catch (cause) {
    throw new ParleyError(
      'config_invalid',
      `The page can't be served on ${deps.host}:${deps.port}: ${reasonOf(cause)}.`,
      { cause },
    );
  }
}

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  switch (code) {
    case 'EADDRINUSE':
      return 'another program uses that port. Set PARLEY_PORT to a free one';
    case 'EACCES':
      return "this user isn't allowed to open that port. Set PARLEY_PORT to one above 1023";
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'this machine has no such address. Correct PARLEY_HOST';
    default:
      return code;
  }
}

function checkToken(token: string): void {
  if (token.length >= minTokenLength && new Set(token).size >= 8) return;
  throw new ParleyError(
    'config_invalid',
    'PARLEY_TOKEN is too weak: use at least 22 random characters, for example from `openssl rand -base64 24`.',
  );
}

function boundPort(app: FastifyInstance): number | undefined {
  const address = app.server.address() as AddressInfo | string | null;
  return typeof address === 'object' && address !== null ? address.port : undefined;
}

/** Interval, ms, while sockets are open: after an end in another process, they are closed within a second. */
const lookMs = 400;
/** Interval, ms, while this process only remembers sign-ins, in case the store becomes unreachable. */
const idleMs = 5_000;

/** Repeats `signIns.look`, one call at a time, until it is stopped. */
function watchSignIns(signIns: Pick<SignIns, 'look'>, log: Log) {
  let timer: NodeJS.Timeout | undefined;
  let isIdle = false;
  let isAsked = false;
  let isStopped = false;
  const next = (ms: number) => {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(look, ms).unref();
  };
  const look = async () => {
    isIdle = isAsked = false;
    let hasSockets = true;
    try {
      hasSockets = await signIns.look();
    } catch (error) {
      // Sign-ins stay valid until the store can be asked again.
      log.debug({ error }, 'sign-ins.not-read');
    }
    isIdle = !hasSockets && !isAsked;
    next(isIdle ? untilStep(idleMs, performance.now()) : lookMs);
  };
  return {
    start: () => next(lookMs),
    /** Call it for each request of a signed-in browser, which may open a socket. */
    hurry: () => {
      isAsked = true;
      if (!isIdle) return;
      isIdle = false;
      next(lookMs);
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

const lockoutPatienceMs = 1_000;

/** Keeps lockouts in the store. While it is unreachable, they apply to this process only. */
function storedLockouts(deps: {
  readonly store: SignInStore;
  readonly clock: Clock;
  readonly log: Log;
}): Lockouts {
  const { store, clock, log } = deps;
  return {
    find: async (source) => {
      try {
        return await withinPatience(store.read(findLockout, { source, at: clock.now() }), lockoutPatienceMs);
      } catch (error) {
        log.debug({ error }, 'lockout.not-read');
        return undefined;
      }
    },
    record: async (source, until) => {
      log.warn({ source, until }, 'lockout.begun');
      try {
        await withinPatience(store.write(lockOut, { source, until, at: clock.now() }), lockoutPatienceMs);
      } catch (error) {
        log.warn({ error, source }, 'lockout.not-stored');
      }
    },
  };
}

type ProxyCheck = (address: string) => boolean;

/**
 * Returns a check for proxies that are trusted to report a sender's address. `configured`: addresses and
 * CIDR ranges, already checked by `isAddressRange`.
 */
function trustedProxies(configured: readonly string[]): ProxyCheck {
  const list = new BlockList();
  for (const range of configured) {
    const [address = '', bits] = range.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that take a file, which may take long as long as bytes keep coming. */
    readonly isUpload?: boolean;
  }
}

/**
 * Cuts a request whose body isn't complete after `requestMs`; a signed-in client's file only if no byte of it comes
 * for `uploadIdleMs`. Call it before adding the hook that checks access, because that hook may wait for the store.
 */
function limitBodyTime(app: FastifyInstance, { requestMs, uploadIdleMs }: ConnectionLimits): void {
  const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>();
  app.addHook('onRequest', async ({ raw }) => {
    if (!hasBody(raw)) return;
    const { socket } = raw;
    const cutIfOpen = () => {
      if (!raw.complete) socket.destroy();
    };
    const timer = setTimeout(cutIfOpen, requestMs).unref();
    timers.set(raw, timer);
    raw.once('end', () => clearTimeout(timer));
  });
  // A refused request never gets here.
  app.addHook('preParsing', async ({ raw, routeOptions }) => {
    if (routeOptions.config.isUpload !== true) return;
    const { socket } = raw;
    clearTimeout(timers.get(raw));
    socket.setTimeout(uploadIdleMs);
    raw.once('end', () => socket.setTimeout(0));
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}

/**
 * Returns the names, as URLs write them, under which other machines reach a server that listens on `host`: none for a
 * loopback address, each address of this machine for a wildcard.
 */
export function ownAddresses(host: string, interfaces = networkInterfaces): readonly string[] {
  if (!isWildcard(host)) return isLoopback(host) ? [] : [inUrl(host)];
  return Object.values(interfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => inUrl(address));
}

/**
 * Returns the page's address for a phone on the same network; undefined when the server only listens for this machine,
 * and in a container, whose address can't be reached from outside.
 */
export function phoneAddress(host: string, port: number, machine = thisMachine): string | undefined {
  if (machine.isContainer() || isLoopback(host)) return undefined;
  if (!isWildcard(host)) return pageAddress(host, port);
  const found = Object.entries(machine.interfaces())
    .filter(([name]) => !virtual.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(isReachable)
    .map(({ address }) => address);
  // Prefer a home network's address to a tunnel's.
  const address = found.find((one) => /^(?:192\.168|10|172\.(?:1[6-9]|2\d|3[01]))\./.test(one)) ?? found[0];
  return address === undefined ? undefined : pageAddress(address, port);
}

/** Bridges to this machine's containers and virtual machines, which no phone can reach. */
const virtual = /^(?:docker|br-|veth|virbr|vmnet|vboxnet)/;

function isReachable({ internal, family, address }: NetworkInterfaceInfo): boolean {
  return !internal && family === 'IPv4' && !address.startsWith('169.254.');
}

const thisMachine = {
  interfaces: networkInterfaces,
  isContainer,
};

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

function inUrl(address: string): string {
  const plain = address.replace(/%.*$/s, '');
  return isIP(plain) === 6 ? `[${plain}]` : plain.toLowerCase();
}
