# Starts nodes where memcached's own tests start a server; loaded ahead of them. All else that they
# share is memcached's.
package Settee;
use strict;
use warnings;
use IO::Socket::INET;
use MemcachedTest ();
use POSIX ();
use Time::HiRes ();

my $count = 0;

# A node that serves, as the handle that tests know. Of memcached's options `-F` alone is known:
# nobody empties the cache.
sub start {
    my ($options) = @_;
    my $name = "$ENV{SETTEE_NAME}-" . ++$count;
    my $base = "$ENV{WORK_DIR}/$name";
    my @command = ($ENV{SETTEE_BINARY}, "serve", "--data-dir", "$base-data", "--port", 0,
                   "--management-port", 0, "--memcached-port", 0, "--tls", "off",
                   "--ready-file", "$base.ready", "--vbuckets", 1, "--memory-quota", "1GiB");
    push @command, "--enable-flush" unless ($options // "") =~ /-F\b/;
    defined(my $pid = fork()) or die "no process for a node: $!";
    if (!$pid) {
        open(STDIN, "<", "/dev/null");
        open(STDOUT, ">>", "$base.log");
        open(STDERR, ">&", \*STDOUT);
        { exec @command };
        POSIX::_exit(127);
    }
    for (1 .. 3000) {
        if (open(my $ready, "<", "$base.ready")) {
            local $/;
            my ($port) = <$ready> =~ /"memcached_port":\s*(\d+)/;
            if ($port) {
                my $connection = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port")
                    or die "nobody listens at $port: $!";
                return Memcached::Handle->new(
                    pid => $pid, conn => $connection, host => "127.0.0.1", port => $port);
            }
        }
        die "the node $name has ended\n" if waitpid($pid, POSIX::WNOHANG()) == $pid;
        Time::HiRes::sleep(0.01);
    }
    die "the node $name does not serve\n";
}

# The process is gone behind this, not only told to go.
sub end {
    my ($handle) = @_;
    local ($?, $!);
    kill("KILL", $handle->{pid});
    waitpid($handle->{pid}, 0);
}

# As theirs, but that a group which is not there ends it, too.
sub statistics {
    my ($socket, $group) = @_;
    print $socket $group ? "stats $group\r\n" : "stats\r\n";
    my %statistics;
    local $_;
    while (<$socket>) {
        last if /^(\.|END|ERROR)/;
        $statistics{$1} = $2 if /^(?:STAT|ITEM) (\S+)\s+([^\r\n]+)/;
    }
    return \%statistics;
}

{
    no strict "refs";
    no warnings "redefine";
    *MemcachedTest::new_memcached = \&start;
    *Memcached::Handle::DESTROY = \&end;
    # None of what a build of memcached may have beside the protocol.
    *MemcachedTest::print_help = sub { "" };
    # A node's clock is not for clients to set, and a document's last second is a whole one.
    *MemcachedTest::mem_move_time = sub { Time::HiRes::sleep($_[1] + 1) };
    *MemcachedTest::mem_stats = \&statistics;
}

1;
