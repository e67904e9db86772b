export { ACCOUNT, servicesAccount, systemAccount, withRevocations, workerContracts, workersAccount } from './accounts.js';
export { issuedAfter, lookUpAccount, pushAccount, readAccount, type SystemConnection } from './account-registry.js';
export type { AccountBody, Claims, ClaimsBody, OperatorBody, Permission, Permissions, UserBody } from './claims.js';
export {
  installationAccounts,
  prepareInstallation,
  renewedAccount,
  signAccount,
  signUser,
  type AccountKeys,
  type Installation,
  type InstallationAccounts,
  type InstallationOptions,
  type UserSigning,
} from './installation.js';
export { credentialsFile, readClaims, readCredentialsFile, signClaims } from './jwt.js';
export {
  keyFiles,
  makeUserKey,
  openInstallationKeys,
  readKey,
  readOrMakeSecret,
  writeSecret,
  type InstallationKeys,
} from './key-folder.js';
export { serverConfig } from './server-config.js';
export { workerPermissions, type WorkerIdentity } from './worker-permissions.js';
export { allContracts, installationUsers } from './installation-contracts.js';
export { allPermissions, servicePermissions } from './service-permissions.js';
