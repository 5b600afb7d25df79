import * as calls from './calls.ts';
import * as files from './files-and-groups.ts';
import type { Handler } from './platform.ts';
import { send } from './send.ts';

export type Route = {
  readonly method: string;
  /** `:number` is an account; other names are parts. */
  readonly path: string;
  readonly handler: Handler;
  /** Whether the call uses signal-cli, so that it waits for the loop (json-rpc) or for its turn (normal, native). */
  readonly asksSignalCli: boolean;
};

const local = (method: string, path: string, handler: Handler): Route => ({
  method,
  path,
  handler,
  asksSignalCli: false,
});
const asking = (method: string, path: string, handler: Handler): Route => ({
  ...local(method, path, handler),
  asksSignalCli: true,
});

/** All calls that this server answers, except receiving. */
export const routes: readonly Route[] = [
  local('GET', '/v1/about', calls.about),
  local('GET', '/v1/health', calls.health),
  local('GET', '/v1/configuration', calls.configuration),
  local('POST', '/v1/configuration', calls.configure),
  asking('GET', '/v1/accounts', calls.accounts),
  asking('POST', '/v1/accounts/:number/rate-limit-challenge', calls.solveChallenge),
  asking('POST', '/v2/send', send),
  asking('PUT', '/v1/typing-indicator/:number', calls.typing(true)),
  asking('DELETE', '/v1/typing-indicator/:number', calls.typing(false)),
  asking('POST', '/v1/reactions/:number', calls.react(false)),
  asking('DELETE', '/v1/reactions/:number', calls.react(true)),
  asking('DELETE', '/v1/remote-delete/:number', calls.remoteDelete),
  asking('POST', '/v1/receipts/:number', calls.receipt),
  local('GET', '/v1/attachments', files.listAttachments),
  local('GET', '/v1/attachments/:attachment', files.getAttachment),
  local('DELETE', '/v1/attachments/:attachment', files.deleteAttachment),
  asking('GET', '/v1/groups/:number', files.listGroups),
  asking('GET', '/v1/groups/:number/:groupid', files.getGroup),
  asking('PUT', '/v1/profiles/:number', calls.updateProfile),
  asking('GET', '/v1/contacts/:number', calls.listContacts),
  asking('GET', '/v1/identities/:number', calls.listIdentities),
  asking('PUT', '/v1/contacts/:number', calls.updateContact),
  asking('GET', '/v1/qrcodelink', calls.linkPicture),
  asking('GET', '/v1/qrcodelink/raw', calls.linkUri),
];

export type Match = { readonly route: Route; readonly parts: readonly string[]; readonly number: string };

export function findRoute(method: string, path: string): Match | undefined {
  for (const route of routes) {
    if (route.method !== method) continue;
    const parts = matchPath(route.path, path);
    if (parts === undefined) continue;
    const isOfAccount = route.path.includes(':number');
    return { route, parts, number: isOfAccount ? (parts[0] ?? '') : '' };
  }
  return undefined;
}

/** Returns the decoded values of the named parts. */
export function matchPath(pattern: string, path: string): readonly string[] | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const values: string[] = [];
  for (const [index, name] of wanted.entries()) {
    const value = given[index] ?? '';
    if (name.startsWith(':')) values.push(decodeURIComponent(value));
    else if (name !== value) return undefined;
  }
  return values.includes('') ? undefined : values;
}
