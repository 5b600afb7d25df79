import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { accountId, agentId, channelId, conversationId, runId, sessionId } from '#contracts/ids.ts';
import { formatSessionKey } from '#contracts/session-key.ts';
import type { ToolOutput, ToolRun } from '#contracts/tool.ts';
import type { Network } from '../../../plugins/web/fetch-page.ts';
import { createWebPlugin } from '../../../plugins/web/index.ts';
import { isPublicAddress } from '../../../plugins/web/public-address.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { workspaceDisks } from '../../../src/processes/disk-gate.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { silentLog } from '../../support/silent-log.ts';

/** The address that counts as public here; all of 127.0.0.0/8 is this machine. */
export const publicAddress = '127.0.0.2';
export const publicHost = 'page.example';

type Answer = string | Buffer | ((req: IncomingMessage, res: ServerResponse) => void);
export type Routes = Readonly<Record<string, Answer>>;

/** Starts a server that stands for the internet, and loads the web tools so that they take it for public. */
export async function aWeb(
  routes: Routes,
  { config = {}, network = {} }: { config?: object; network?: Network } = {},
) {
  const requests: IncomingMessage[] = [];
  const server = await listen(publicAddress, (req, res) => {
    requests.push(req);
    const answer = routes[req.url?.split('?')[0] ?? ''];
    if (typeof answer === 'function') return answer(req, res);
    res.statusCode = answer === undefined ? 404 : 200;
    if (typeof answer === 'string') res.setHeader('content-type', 'text/html; charset=utf-8');
    res.end(answer);
  });
  const host = createPluginHost({ log: silentLog, settle: nothingToSettle, hooks: noHooks });
  const definition = createWebPlugin({
    resolve: async () => [{ address: publicAddress, family: 4 }],
    isPublic: (address) => address === publicAddress || isPublicAddress(address),
    ...network,
  });
  const settings = { ports: [server.port], ...config };
  const reports = await host.load([{ definition, config: settings }]);
  const run = aRun();
  return {
    origin: `http://${publicHost}:${server.port}`,
    port: server.port,
    requests,
    reports,
    tools: () => host.toolsFor(run),
    check: () => definition.check?.({ disks: workspaceDisks }, definition.configSchema.parse(settings)),
    /** Calls a tool as the loop does: arguments through its schema, then `execute`. */
    async call(name: string, args: object, signal = new AbortController().signal): Promise<ToolOutput> {
      const tool = host.toolsFor(run).find((one) => one.name === name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      const ctx = { callId: 'c1', run, signal, update: () => undefined };
      const output = await tool.execute(tool.inputSchema.parse(args), ctx);
      if ('parked' in output) throw new Error('the tool waits');
      return output;
    },
    close: async () => {
      await host.close();
      await server.close();
    },
  };
}

export type AWeb = Awaited<ReturnType<typeof aWeb>>;

/** Listens on an address, on any port unless one is given. */
export async function listen(address: string, onRequest: RequestListener, port = 0) {
  const server = createServer(onRequest);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(port, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function aRun(): ToolRun {
  const [channel, account, conversation] = [channelId('net'), accountId('77'), conversationId('12')];
  const agent = agentId('main');
  return {
    runId: runId('r1'),
    sessionId: sessionId('s1'),
    sessionKey: formatSessionKey({ kind: 'group', agent, account, channel, group: conversation }),
    agentId: agent,
    route: { channel, account, conversation },
    authority: 'owner',
    workspace: '/nowhere',
    epoch: 1,
  };
}
