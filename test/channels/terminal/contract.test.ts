import { terminalCapabilities } from '../../../channels/terminal/capabilities.ts';
import { terminalRoute } from '../../../channels/terminal/ids.ts';
import { createSessionDouble } from '../../support/session-double.ts';
import { channelContract } from '../channel-contract.ts';
import { aTerminalHost } from './terminal-setup.ts';

channelContract('terminal', async () => {
  const host = await aTerminalHost(createSessionDouble().timeline);
  const client = host.newClient();
  return {
    capabilities: terminalCapabilities,
    account: 'terminal',
    route: terminalRoute('main'),
    newAdapter: host.newAdapter,
    personSays: async (text) => void client.say(text),
    redeliver: async () => client.repeatLast(),
    unacknowledged: () => client.unacknowledged.length,
    standing: async () => {
      await client.synced();
      return client.standing;
    },
    close: host.close,
  };
});
