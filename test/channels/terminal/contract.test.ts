import { terminalCapabilities } from '../../../channels/terminal/capabilities.ts';
import { terminalRoute } from '../../../channels/terminal/ids.ts';
import { clientContract } from '../client-contract.ts';
import { aTerminalHost } from './terminal-setup.ts';

clientContract('terminal', {
  capabilities: terminalCapabilities,
  route: terminalRoute('main'),
  host: aTerminalHost,
});
