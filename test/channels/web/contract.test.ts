import { webCapabilities } from '../../../channels/web/capabilities.ts';
import { webRoute } from '../../../channels/web/ids.ts';
import { clientContract } from '../client-contract.ts';
import { aWebHost } from './web-setup.ts';

clientContract('web', { capabilities: webCapabilities, route: webRoute('main'), host: aWebHost });
