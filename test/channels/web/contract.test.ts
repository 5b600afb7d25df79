import { webCapabilities } from '../../../channels/web/capabilities.ts';
import { webRoute } from '../../../channels/web/ids.ts';
import { createSessionDouble } from '../../support/session-double.ts';
import { channelContract } from '../channel-contract.ts';
import { aWebHost } from './web-setup.ts';

channelContract('web', async () => {
  const host = await aWebHost(createSessionDouble().timeline);
  const client = host.newClient();
  return {
    capabilities: webCapabilities,
    account: 'web',
    route: webRoute('main'),
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
