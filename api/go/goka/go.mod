module wallarooapi/goka

go 1.24.0

require github.com/lovoo/goka v1.1.16
