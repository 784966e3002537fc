package privacy

// A name is a row of the table.
type name struct {
	pattern string
	why     string
	except  []string // matches of the pattern that are not restricted
}

// Reasons of several rows.
const (
	sshKey   = "SSH private key"
	keyFile  = "private key"
	keyStore = "key store"
	cloud    = "cloud credentials"
	registry = "token of a package registry"
	password = "password of a database"
	hashes   = "password hashes"
	secrets  = "secrets of an application"
)

// builtin is the table. A name in it nearly always holds a secret; docs/restricted-names.md shows the table.
var builtin = [...]name{
	{".env", "secrets in environment variables", nil},
	{".env.*", "secrets in environment variables", []string{".env.example", ".env.sample", ".env.template"}},

	{".envrc", "secrets in environment variables", nil},
	{"*.env", "secrets in environment variables", nil},

	{"id_rsa", sshKey, nil},
	{"id_dsa", sshKey, nil},
	{"id_ecdsa", sshKey, nil},
	{"id_ed25519", sshKey, nil},
	{"id_ecdsa_sk", sshKey, nil},
	{"id_ed25519_sk", sshKey, nil},
	{"*_rsa", sshKey, nil},
	{"*_dsa", sshKey, nil},
	{"*_ecdsa", sshKey, nil},
	{"*_ed25519", sshKey, nil},
	{"ssh_host_*_key", "SSH private key of a host", nil},
	{"*.ppk", "SSH private key of PuTTY", nil},

	{"*.pem", keyFile + ", or certificates", nil},
	{"*.key", keyFile, nil},
	{"*.p8", keyFile, nil},
	{"*.p12", keyFile + " with its certificate", nil},
	{"*.pfx", keyFile + " with its certificate", nil},
	{"*.jks", keyStore + " of Java", nil},
	{"*.keystore", keyStore + " of Java", nil},
	{"*.kdb", keyStore + " of KeePass", nil},
	{"*.kdbx", keyStore + " of KeePass", nil},
	{"*.keytab", "keys of Kerberos", nil},
	{"secring.gpg", keyFile + " of GnuPG", nil},
	{"**/private-keys-v1.d/", keyFile + " of GnuPG", nil},
	{"*.ovpn", "profile of a VPN with its key", nil},
	{"**/wireguard/*.conf", "profile of a VPN with its key", nil},
	{"wallet.dat", "wallet with its private keys", nil},

	{".netrc", "passwords of hosts", nil},
	{"_netrc", "passwords of hosts", nil},
	{".git-credentials", "passwords of Git hosts", nil},
	{"**/.config/gh/hosts.yml", "token of GitHub", nil},
	{".pgpass", password, nil},
	{"pgpass.conf", password, nil},
	{".my.cnf", password, nil},
	{".mylogin.cnf", password, nil},
	{".htpasswd", hashes, nil},
	{"shadow", hashes, nil},
	{"shadow-", hashes, nil},
	{"gshadow", hashes, nil},
	{"gshadow-", hashes, nil},

	{".npmrc", registry, nil},
	{".pypirc", registry, nil},
	{"**/.cargo/credentials", registry, nil},
	{"**/.cargo/credentials.toml", registry, nil},
	{"**/.gem/credentials", registry, nil},
	{"**/.docker/config.json", registry, nil},
	{".dockercfg", registry, nil},

	{"**/.aws/credentials", cloud, nil},
	{"**/.config/gcloud/credentials.db", cloud, nil},
	{"**/.config/gcloud/access_tokens.db", cloud, nil},
	{"**/.config/gcloud/legacy_credentials/", cloud, nil},
	{"application_default_credentials.json", cloud, nil},
	{"service-account*.json", cloud, nil},
	{"service_account*.json", cloud, nil},
	{"credentials.json", cloud, nil},
	{"**/.azure/accesstokens.json", cloud, nil},
	{"**/.azure/msal_token_cache.json", cloud, nil},
	{".s3cfg", cloud, nil},
	{".boto", cloud, nil},
	{"rclone.conf", cloud, nil},
	{"**/.kube/config", "credentials of a Kubernetes cluster", nil},
	{".vault-token", "token of Vault", nil},
	{"*.tfstate", "state of Terraform, with secrets in the clear", nil},
	{"*.tfstate.backup", "state of Terraform, with secrets in the clear", nil},
	{"credentials.tfrc.json", "token of Terraform", nil},

	{"terraform.tfvars", "values for Terraform, with secrets in the clear", nil},
	{"kubeconfig", "credentials of a Kubernetes cluster", nil},
	{"auth.json", registry, nil},
	{"*.asc", keyFile + " of GnuPG, or a signature", nil},

	{"secrets.yml", secrets, nil},
	{"secrets.yaml", secrets, nil},
	{"secrets.json", secrets, nil},
	{"secrets.toml", secrets, nil},
	{"secret*", secrets, nil},
}
